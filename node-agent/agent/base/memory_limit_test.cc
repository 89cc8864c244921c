// SPDX-License-Identifier: Apache-2.0
// Memory limits in folders as control groups of both versions have them.
#include "node-agent/agent/base/memory_limit.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

namespace weft::agent {
namespace {

class MemoryLimit : public testing::Test {
 protected:
  MemoryLimit() {
    char name[] = "/tmp/weft-memory-limit-XXXXXX";
    EXPECT_NE(mkdtemp(name), nullptr);
    root_ = name;
    std::filesystem::create_directories(root_ + "/kubepods/pod/container");
  }
  ~MemoryLimit() override { std::filesystem::remove_all(root_); }

  void Write(const std::string& file, const std::string& text) {
    std::ofstream(root_ + "/" + file) << text;
  }

  std::string root_;
};

TEST_F(MemoryLimit, TheSmallestOnThePathCounts) {
  const std::string container = root_ + "/kubepods/pod/container";
  EXPECT_EQ(MemoryLimitOf(root_, container), 0U);
  Write("kubepods/memory.max", "1000000\n");
  Write("kubepods/pod/memory.max", "300000\n");
  Write("kubepods/pod/container/memory.max", "max\n");
  EXPECT_EQ(MemoryLimitOf(root_, container), 300000U);
  EXPECT_EQ(MemoryLimitOf(root_, root_ + "/kubepods"), 1000000U);
  Write("kubepods/pod/container/memory.max", "200000\n");
  EXPECT_EQ(MemoryLimitOf(root_, container), 200000U);
}

TEST_F(MemoryLimit, Version1HasAnotherFileAndNoWordForUnlimited) {
  Write("kubepods/memory.limit_in_bytes", "9223372036854771712\n");
  EXPECT_EQ(MemoryLimitOf(root_, root_ + "/kubepods"), 0U);
  Write("memory.limit_in_bytes", "123456\n");
  EXPECT_EQ(MemoryLimitOf(root_, root_ + "/kubepods"), 123456U);
}

TEST_F(MemoryLimit, PrefersTheHierarchyThatHasTheController) {
  Write("mountinfo",
        "30 20 0:25 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n"
        "31 20 0:26 / /sys/fs/cgroup/cpu rw shared:9 - cgroup cgroup rw,cpu\n"
        "32 20 0:27 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n");
  EXPECT_EQ(MemoryMount(root_ + "/mountinfo"), "/sys/fs/cgroup/memory");
  Write("mountinfo", "30 20 0:25 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n");
  EXPECT_EQ(MemoryMount(root_ + "/mountinfo"), "/sys/fs/cgroup");
  Write("mountinfo", "32 20 0:27 /a/part /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n");
  EXPECT_EQ(MemoryMount(root_ + "/mountinfo"), std::nullopt);
}

TEST_F(MemoryLimit, ZeroMeansNoLimit) {
  EXPECT_EQ(SmallerLimit(0, 0), 0U);
  EXPECT_EQ(SmallerLimit(0, 7), 7U);
  EXPECT_EQ(SmallerLimit(7, 0), 7U);
  EXPECT_EQ(SmallerLimit(7, 5), 5U);
}

}  // namespace
}  // namespace weft::agent
