// SPDX-License-Identifier: Apache-2.0
// When containers are searched. What is found in them is seen where there are some
// (tests/vm/user_probes_test.py).
#include "node-agent/agent/cluster/probe_search.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <thread>

#include "node-agent/agent/base/limits.h"

namespace weft::agent {
namespace {

constexpr int64_t kLater = std::chrono::nanoseconds(kProbeInterval).count();

class ProbeSearchTest : public testing::Test {
 protected:
  ProbeSearchTest() {
    char name[] = "/tmp/weft-probe-search-XXXXXX";
    EXPECT_NE(mkdtemp(name), nullptr);
    folder_ = name;
    spec_.kernel.user_probes.push_back({.name = "p", .object = "/bin/p", .function = "f"});
  }
  ~ProbeSearchTest() override { std::filesystem::remove_all(folder_); }

  ProbedContainer Container(const std::string& id, const std::string& processes) {
    const std::string cgroup = folder_ + "/" + id;
    std::filesystem::create_directory(cgroup);
    std::ofstream(cgroup + "/cgroup.procs") << processes;
    return {id, cgroup, "pod/" + id};
  }
  // False: there was nothing to search.
  bool SearchAt(int64_t now_ns) {
    EXPECT_TRUE(search_.Advance(spec_, there_, true, now_ns).empty());
    if (!search_.IsGoingOn() && !search_.IsDue(now_ns)) return false;
    while (!search_.IsDue(now_ns)) std::this_thread::yield();
    EXPECT_TRUE(search_.Advance(spec_, there_, true, now_ns).empty());
    return true;
  }

  std::string folder_;
  api::TraceSpec spec_;
  std::vector<ProbedContainer> there_;
  ProbeSearch search_;
};

TEST_F(ProbeSearchTest, AProcessThatIsNotInItsContainerIsNotGoneThrough) {
  for (const std::string& processes :
       {std::string(), std::string("1\n"), std::to_string(getpid()) + "\n", std::string("x\n")}) {
    const auto root = OpenContainerRoot(Container("c", processes));
    ASSERT_FALSE(root);
    EXPECT_EQ(root.error().code, ErrorCode::kNotFound);
  }
}

TEST_F(ProbeSearchTest, SearchesAContainerAgainThatRunsNothingYet) {
  EXPECT_FALSE(SearchAt(1));
  EXPECT_TRUE(search_.has_ended()) << "of none";
  there_ = {Container("a", "")};
  EXPECT_TRUE(SearchAt(2));
  EXPECT_TRUE(search_.has_ended());
  EXPECT_EQ(search_.Notices(), std::vector<std::string>{});
  EXPECT_FALSE(search_.IsDue(3));
  EXPECT_FALSE(SearchAt(3)) << "too soon";
  there_.push_back(Container("b", ""));
  EXPECT_TRUE(SearchAt(4)) << "a new one";
  EXPECT_TRUE(search_.IsDue(4 + kLater));
  EXPECT_TRUE(SearchAt(4 + kLater));
  there_.clear();
  EXPECT_FALSE(SearchAt(4 + 2 * kLater));
  EXPECT_FALSE(search_.IsDue(4 + 3 * kLater)) << "all are gone";
}

TEST_F(ProbeSearchTest, ItBeginsWhenItMay) {
  there_ = {Container("a", "")};
  EXPECT_TRUE(search_.Advance(spec_, there_, false, 1).empty());
  EXPECT_FALSE(search_.IsGoingOn());
  EXPECT_FALSE(search_.has_ended());
  EXPECT_FALSE(search_.IsDue(1));
  EXPECT_TRUE(search_.IsDue(kLater));
  EXPECT_TRUE(SearchAt(kLater));
  EXPECT_TRUE(search_.has_ended());
}

TEST_F(ProbeSearchTest, ReportsOnceAnEventThatTheRingRefuses) {
  search_.Advance(spec_, there_, true, 1);
  kernel::Event event;
  event.twin = 1;
  search_.Refuse(event, "no");
  search_.Refuse(event, "no");
  EXPECT_EQ(search_.Notices(), std::vector<std::string>{"no"});
}

}  // namespace
}  // namespace weft::agent
