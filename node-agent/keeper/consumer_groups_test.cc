// SPDX-License-Identifier: Apache-2.0
// Where a process's memory is limited, and groups of consumers below that: real control groups of
// either version, where the machine lets the test make them.
#include "node-agent/keeper/consumer_groups.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include <csignal>

#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>

namespace weft::keeper {
namespace {

constexpr uint64_t kMi = uint64_t{1} << 20;

std::string Read(const std::string& file) {
  std::ifstream in(file);
  return {std::istreambuf_iterator<char>(in), {}};
}

// --- finding -------------------------------------------------------------------------------------

class FindMemoryCgroupTest : public testing::Test {
 protected:
  FindMemoryCgroupTest() {
    char name[] = "/tmp/weft-cgroup-XXXXXX";
    EXPECT_NE(mkdtemp(name), nullptr);
    proc_ = name;
  }
  ~FindMemoryCgroupTest() override { std::filesystem::remove_all(proc_); }

  std::optional<MemoryCgroup> Find(const std::string& mountinfo, const std::string& cgroup) {
    std::ofstream(proc_ + "/mountinfo") << mountinfo;
    std::ofstream(proc_ + "/cgroup") << cgroup;
    return FindMemoryCgroup(proc_);
  }

  std::string proc_;
};

TEST_F(FindMemoryCgroupTest, WholeHierarchyOfVersion2) {
  const char* mounts = "30 20 0:25 / /sys/fs/cgroup rw,nosuid - cgroup2 cgroup rw\n";
  auto found = Find(mounts, "0::/kubepods/pod1/c1\n");
  ASSERT_TRUE(found);
  EXPECT_FALSE(found->is_version_1);
  EXPECT_EQ(found->mount, "/sys/fs/cgroup");
  EXPECT_EQ(found->folder, "/sys/fs/cgroup/kubepods/pod1/c1");
  found = Find(mounts, "0::/\n");  // in a cgroup namespace
  ASSERT_TRUE(found);
  EXPECT_EQ(found->folder, "/sys/fs/cgroup");
}

TEST_F(FindMemoryCgroupTest, PartThatARuntimeMounts) {
  const auto found = Find(
      "31 20 0:26 /kubepods/pod1/c1 /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu\n"
      "32 20 0:27 /kubepods/pod1/c1 /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n"
      "33 20 0:28 / /sys/fs/cgroup/unified rw - cgroup2 cgroup rw\n",
      "4:cpu:/kubepods/pod1/c1\n3:memory:/kubepods/pod1/c1\n0::/\n");
  ASSERT_TRUE(found);
  EXPECT_TRUE(found->is_version_1);
  EXPECT_EQ(found->folder, "/sys/fs/cgroup/memory");
}

TEST_F(FindMemoryCgroupTest, NoneWhereItsGroupIsNotMounted) {
  EXPECT_FALSE(Find("", "0::/a\n"));
  EXPECT_FALSE(Find("30 20 0:25 / /sys/fs/cgroup rw - cgroup2 cgroup rw\n", ""));
  EXPECT_FALSE(Find("30 20 0:25 /a /sys/fs/cgroup rw - cgroup2 cgroup rw\n", "0::/ab\n"));
  EXPECT_FALSE(Find("30 20 0:25 /../.. /sys/fs/cgroup rw - cgroup2 cgroup rw\n", "0::/a\n"));
}

// --- groups --------------------------------------------------------------------------------------

// A process that does nothing until it is told to use `bytes`.
class Eater {
 public:
  explicit Eater(uint64_t bytes) {
    EXPECT_EQ(pipe(begin_), 0);
    pid = fork();
    if (pid != 0) return;
    char byte = 0;
    (void)!read(begin_[0], &byte, 1);
    for (uint64_t eaten = 0; eaten < bytes; eaten += kMi) {
      void* memory = mmap(nullptr, kMi, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
      if (memory == MAP_FAILED) _exit(2);
      std::memset(memory, 1, kMi);
    }
    _exit(0);
  }
  ~Eater() {
    close(begin_[0]);
    close(begin_[1]);
  }
  // Returns the status of its end.
  int Eat() {
    (void)!write(begin_[1], "x", 1);
    int status = 0;
    EXPECT_EQ(waitpid(pid, &status, 0), pid);
    return status;
  }

  pid_t pid = -1;

 private:
  int begin_[2] = {-1, -1};
};

// GROUP is a group of the test's own, in which this process is meanwhile.
class ConsumerGroupsTest : public testing::Test {
 protected:
  void SetUp() override {
    auto own = FindMemoryCgroup();
    if (!own) GTEST_SKIP() << "no memory controller is mounted";
    above_ = own->folder;
    own_ = *own;
    own_.folder += "/weft-groups-test-" + std::to_string(getpid());
    if (mkdir(own_.folder.c_str(), 0755) != 0)
      GTEST_SKIP() << "no control group can be made in " << above_ << ": " << std::strerror(errno);
    const std::string limit = own_.is_version_1 ? "/memory.limit_in_bytes" : "/memory.max";
    std::ofstream(own_.folder + limit) << 64 * kMi;
    std::ofstream(own_.folder + "/cgroup.procs") << getpid();
    if (std::stoull("0" + Read(own_.folder + limit)) != 64 * kMi) {
      MoveBack();
      GTEST_SKIP() << above_ << " gives no memory controller to groups below it";
    }
  }
  void TearDown() override {
    if (!own_.folder.empty()) MoveBack();
  }

  void MoveBack() {
    std::ofstream(above_ + "/cgroup.procs") << getpid();
    for (const char* below : {"/consumers", "/weft", ""})
      EXPECT_TRUE(rmdir((own_.folder + below).c_str()) == 0 || errno == ENOENT) << below;
    own_.folder.clear();
  }

  [[nodiscard]] std::string GroupOf(const std::string& name) const {
    return own_.folder + "/consumers/consumer-" + name;
  }

  std::string above_;
  MemoryCgroup own_;
};

TEST_F(ConsumerGroupsTest, KillsTheConsumerThatExceedsItsLimitAndNoOther) {
  auto groups = ConsumerGroups::Make(own_, 16 * kMi);
  ASSERT_TRUE(groups) << groups.error().message;
  EXPECT_EQ(std::stoull(Read(own_.folder + "/consumers" +
                             (own_.is_version_1 ? "/memory.limit_in_bytes" : "/memory.max"))),
            48 * kMi);
  Eater large(32 * kMi), small(4 * kMi);
  ASSERT_TRUE(groups->Enter("large", large.pid));
  ASSERT_TRUE(groups->Enter("small", small.pid));
  EXPECT_EQ(Read(GroupOf("small") + "/cgroup.procs"), std::to_string(small.pid) + "\n");
  const int status = large.Eat();
  EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL) << status;
  EXPECT_TRUE(groups->Leave("large"));
  EXPECT_EQ(small.Eat(), 0);
  EXPECT_FALSE(groups->Leave("small"));
  for (const char* name : {"large", "small"}) EXPECT_NE(access(GroupOf(name).c_str(), F_OK), 0);
}

TEST_F(ConsumerGroupsTest, TheNextConsumerOfTheNameBeginsAnew) {
  auto groups = ConsumerGroups::Make(own_, 16 * kMi);
  ASSERT_TRUE(groups) << groups.error().message;
  Eater first(32 * kMi), second(4 * kMi);
  ASSERT_TRUE(groups->Enter("one", first.pid));
  (void)first.Eat();
  EXPECT_TRUE(groups->Leave("one"));
  ASSERT_TRUE(groups->Enter("one", second.pid));
  EXPECT_EQ(second.Eat(), 0);
  EXPECT_FALSE(groups->Leave("one"));
  EXPECT_FALSE(groups->Leave("one")) << "it is not in a group any more";
}

TEST_F(ConsumerGroupsTest, RemovesGroupsThatAKilledKeeperLeft) {
  ASSERT_TRUE(ConsumerGroups::Make(own_, 16 * kMi));
  ASSERT_EQ(mkdir(GroupOf("left").c_str(), 0755), 0);
  ASSERT_TRUE(ConsumerGroups::Make(own_, 16 * kMi));
  EXPECT_NE(access(GroupOf("left").c_str(), F_OK), 0);
}

TEST(ConsumerGroups, WithoutGroupsNothingHappens) {
  ConsumerGroups none;
  EXPECT_FALSE(none.is_on());
  EXPECT_TRUE(none.Enter("shop", getpid()));
  EXPECT_FALSE(none.Leave("shop"));
}

TEST(ConsumerGroups, AGroupThatCannotBeWrittenIsRefused) {
  const auto groups = ConsumerGroups::Make({false, "/nowhere", "/nowhere/a"}, kMi);
  ASSERT_FALSE(groups);
  EXPECT_EQ(groups.error().code, ErrorCode::kUnsupported);
  EXPECT_NE(groups.error().message.find("/nowhere/a"), std::string::npos);
}

}  // namespace
}  // namespace weft::keeper
