// SPDX-License-Identifier: Apache-2.0
// When a rule is reported as not offered, and what a process's files offer. Containers are searched
// where there are some (tests/cluster/modes_test.py).
#include "node-agent/agent/cluster/event_part.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include "node-agent/agent/cluster/event_search.h"

namespace weft::agent {
namespace {

// What a tracepoint "shop:order" with a field "id" leaves in its program (docs/formats/event.md).
__attribute__((section("weft_desc"), used)) const char kDescription[] =
    "\x36\0\0\0\x01\0\x01\0\x06\0\0\0\x0b\0\0\0\0\0\0\0\0\0\0\0"
    "shop:order\0"
    "\x13\0\0\0\x01\0\x04\x0a\0\0\0\0\x03\0\0\0"
    "id";

using Problems = std::vector<std::string>;

TEST(RuleVerdictsTest, ReportsAProblemAfterTwoWholeLooks) {
  RuleVerdicts verdicts;
  EXPECT_FALSE(verdicts.AllOffered());
  verdicts.Take({.processes = 0, .is_complete = true, .problems = {"p", "q"}});
  verdicts.Take({.processes = 1, .is_complete = true, .problems = {"p", "q"}});
  verdicts.Take({.processes = 1, .is_complete = false, .problems = {"p", ""}});
  EXPECT_EQ(verdicts.Problems(), Problems()) << "only one look counts";
  verdicts.Take({.processes = 1, .is_complete = true, .problems = {"later", "q"}});
  EXPECT_EQ(verdicts.Problems(), Problems({"later", ""}));
  EXPECT_FALSE(verdicts.AllOffered());
  verdicts.Take({.processes = 1, .is_complete = false, .problems = {"", "q"}});
  EXPECT_EQ(verdicts.Problems(), Problems({"", ""}));
  EXPECT_TRUE(verdicts.AllOffered());
}

TEST(RuleVerdictsTest, KnowsAtOnceThatAllIsOffered) {
  RuleVerdicts verdicts;
  verdicts.Take({.processes = 1, .is_complete = false, .problems = {""}});
  EXPECT_EQ(verdicts.Problems(), Problems({""}));
  EXPECT_TRUE(verdicts.AllOffered());
}

TEST(EventSearchTest, FindsEventsOfProcessesThatHaveTheLibrary) {
  EXPECT_EQ(SearchEvents([](int32_t) { return false; }).processes, 0u);
  const auto is_this = [](int32_t pid) { return pid == getpid(); };
  EXPECT_EQ(SearchEvents(is_this).processes, 0u);
  const size_t size = 4096;
  const int fd = memfd_create("libweft.so", MFD_CLOEXEC);
  ASSERT_GE(fd, 0);
  ASSERT_EQ(ftruncate(fd, size), 0);
  void* memory = mmap(nullptr, size, PROT_READ, MAP_SHARED, fd, 0);
  ASSERT_NE(memory, MAP_FAILED);
  const OfferedBySome offered = SearchEvents(is_this);
  munmap(memory, size);
  close(fd);
  EXPECT_EQ(offered.processes, 1u);
  if (offered.events.empty()) {
    EXPECT_FALSE(offered.is_complete) << "it cannot read the program's file, and knows that";
    EXPECT_NE(geteuid(), 0u);
    return;
  }
  ASSERT_EQ(offered.events.size(), 1u);
  EXPECT_EQ(offered.events[0].name, "shop:order");
  EXPECT_NE(offered.events[0].FindField("id"), nullptr);
  EXPECT_TRUE(offered.is_complete);
}

}  // namespace
}  // namespace weft::agent
