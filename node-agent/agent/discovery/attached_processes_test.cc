// SPDX-License-Identifier: Apache-2.0
// What the keeper and the finder learn of attached processes; that they are recorded:
// tests/local/attach_test.py.
#include "node-agent/agent/discovery/attached_processes.h"

#include <sys/wait.h>
#include <unistd.h>

#include <csignal>

#include "lib/base/pidfd.h"
#include "node-agent/agent/testing/agent_fixture.h"

namespace weft::agent {
namespace {

class AttachedProcessesTest : public testing::AgentFixture {
 protected:
  AttachedProcessesTest() : child_(fork()) {
    if (child_ == 0) {
      for (;;) pause();
    }
  }
  ~AttachedProcessesTest() override { EndChild(); }
  void SetUp() override {
    ASSERT_GT(child_, 0);
    if (!finder_.refusal().empty()) GTEST_SKIP() << finder_.refusal();
  }

  void EndChild() {
    if (child_ > 0) {
      kill(child_, SIGKILL);
      waitpid(child_, nullptr, 0);
    }
    child_ = -1;
  }
  [[nodiscard]] std::string Key() const { return "root/" + std::to_string(child_); }

  pid_t child_;
  Finder finder_{[](const FoundMemory&) { return Finder::Verdict::kKnown; }};
  ControlAreas areas_{{.slot_count = 1, .clock = WEFT_CLOCK_MONOTONIC},
                      finder_,
                      [](const std::string&) { return std::vector<control::ChannelSpec>{}; },
                      [this](ipc::Message message) { ToKeeper(std::move(message)); },
                      [](const std::string&) {}};
  AttachedProcesses attached_{finder_, areas_,
                              [this](ipc::Message message) { ToKeeper(std::move(message)); }};
};

TEST_F(AttachedProcessesTest, TheKeeperHasAProcessUntilAllAreRemoved) {
  std::vector<int32_t> loaded;
  const Status refused = Fail(ErrorCode::kUnsupported, "it is a static program");
  const Status attached = attached_.Attach({child_}, [&](int32_t pid) {
    loaded.push_back(pid);
    return refused;
  });
  ASSERT_FALSE(attached);
  EXPECT_EQ(attached.error().message, "it is a static program");
  EXPECT_EQ(loaded, std::vector<int32_t>{child_});
  EXPECT_EQ(Last<ipc::Keep>().key, Key());
  EXPECT_TRUE(Last<ipc::Keep>().fd);
  EXPECT_EQ(Count<ipc::Drop>(), 0u);
  attached_.RemoveAll({child_});
  EXPECT_EQ(Last<ipc::Drop>().key, Key());
}

TEST_F(AttachedProcessesTest, AProcessThatGetsNoControlAreaIsAnError) {
  const Status attached = attached_.Attach({child_}, [](int32_t) { return Status{}; });
  ASSERT_FALSE(attached);
  EXPECT_EQ(attached.error().code, ErrorCode::kInvalid);
}

TEST_F(AttachedProcessesTest, AProcessThatEndsMeanwhileIsLeftOut) {
  const pid_t pid = child_;
  const Status attached = attached_.Attach({pid}, [this](int32_t) {
    EndChild();
    return Status(Fail(ErrorCode::kInvalid, "it is gone"));
  });
  ASSERT_FALSE(attached);
  EXPECT_EQ(attached.error().code, ErrorCode::kNotFound);
  EXPECT_EQ(attached.error().message, "process " + std::to_string(pid) + " has ended");
}

TEST_F(AttachedProcessesTest, TakesProcessesFromTheKeeperAndNothingElse) {
  ipc::Kept kept{Key(), "", OpenPidfd(child_)};
  EXPECT_TRUE(attached_.TakeKept(kept));
  ipc::Kept other{"process/1", "", {}};
  EXPECT_FALSE(attached_.TakeKept(other));
}

}  // namespace
}  // namespace weft::agent
