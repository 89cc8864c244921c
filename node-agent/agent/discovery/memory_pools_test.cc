// SPDX-License-Identifier: Apache-2.0
// The agent's side of memory pools: what is in the FIFO after processes took from it, died, or were
// read to their end.
#include "node-agent/agent/discovery/memory_pools.h"

#include <fcntl.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fstream>
#include <vector>

#include "node-agent/agent/testing/agent_fixture.h"

namespace weft::agent {
namespace {

constexpr uint64_t kPage = 4096;
constexpr uint64_t kBudget = 200 * kPage;
constexpr uint64_t kUnits = 175;  // 7/8 of the budget

class MemoryPoolsTest : public testing::AgentFixture {
 protected:
  MemoryPools Make() {
    return MemoryPools([this](ipc::Message message) { ToKeeper(std::move(message)); },
                       [this](const MemoryPools::Visit& visit) {
                         for (const uint64_t bytes : rings_) visit("c", bytes);
                       });
  }
  [[nodiscard]] std::string path() const { return folder() + "/c.mem"; }

  // Takes units as a process does; returns how many there were.
  uint64_t Take(uint64_t units) {
    const UniqueFd fifo(open(path().c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC));
    int there = 0;
    EXPECT_EQ(ioctl(fifo.get(), FIONREAD, &there), 0);
    std::vector<char> bytes(units);
    if (units > 0) {
      EXPECT_EQ(read(fifo.get(), bytes.data(), units), static_cast<ssize_t>(units));
    }
    return static_cast<uint64_t>(there);
  }
  uint64_t Left() { return Take(0); }

  std::vector<uint64_t> rings_;
};

TEST_F(MemoryPoolsTest, APoolHoldsTheUnitsThatRingSetsLeave) {
  rings_ = {10 * kPage, 5 * kPage};
  MemoryPools pools = Make();
  ASSERT_TRUE(pools.Open("c", path(), kBudget));
  EXPECT_EQ(Left(), kUnits - 15);
  struct stat st{};
  ASSERT_EQ(stat(path().c_str(), &st), 0);
  EXPECT_EQ(st.st_mode, static_cast<mode_t>(S_IFIFO | 0666));
  EXPECT_EQ(Count<ipc::Keep>(), 1U);
  pools.Close("c");
  EXPECT_EQ(Last<ipc::Drop>().key, "memory_pool/c");
}

TEST_F(MemoryPoolsTest, MakesNoPoolWithoutALimit) {
  MemoryPools pools = Make();
  ASSERT_TRUE(pools.Open("c", path(), 0));
  EXPECT_FALSE(pools.Has("c"));
  EXPECT_NE(access(path().c_str(), F_OK), 0);
}

TEST_F(MemoryPoolsTest, UnitsOfAShrunkRingSetComeBackAtOnce) {
  MemoryPools pools = Make();
  ASSERT_TRUE(pools.Open("c", path(), kBudget));
  EXPECT_EQ(Take(20), kUnits);
  rings_ = {20 * kPage};
  pools.Return("c", 20 * kPage, 3 * kPage);
  EXPECT_EQ(Left(), kUnits - 3);
  pools.Return("c", 3 * kPage, 3 * kPage);
  pools.Return("another", 3 * kPage, 0);
  EXPECT_EQ(Left(), kUnits - 3);
}

// A process may be about to announce its ring set: only what is missing twice is put back.
TEST_F(MemoryPoolsTest, UnitsOfNoKnownRingSetComeBack) {
  MemoryPools pools = Make();
  ASSERT_TRUE(pools.Open("c", path(), kBudget));
  Take(20);
  pools.Compare();
  EXPECT_EQ(Left(), kUnits - 20);
  rings_ = {15 * kPage};
  pools.Compare();
  EXPECT_EQ(Left(), kUnits - 15);
  pools.Compare();
  EXPECT_EQ(Left(), kUnits - 15);
}

TEST_F(MemoryPoolsTest, RingSetsThatTookNothingAreTakenOut) {
  MemoryPools pools = Make();
  ASSERT_TRUE(pools.Open("c", path(), kBudget));
  rings_ = {50 * kPage};
  pools.Compare();
  EXPECT_EQ(Left(), kUnits - 50);
  rings_ = {1000 * kPage};
  pools.Compare();
  EXPECT_EQ(Left(), 0U);
  EXPECT_TRUE(pools.IsShort("c"));
}

TEST_F(MemoryPoolsTest, TheNextAgentContinuesWithTheUnitsLeft) {
  UniqueFd kept;
  {
    MemoryPools pools = Make();
    ASSERT_TRUE(pools.Open("c", path(), kBudget));
    kept = std::move(Last<ipc::Keep>().fd);
    Take(25);
  }
  MemoryPools pools = Make();
  EXPECT_FALSE(pools.TakeKept(ipc::Kept{"doorbell/c", "", {}}));
  EXPECT_TRUE(pools.TakeKept(ipc::Kept{"memory_pool/c", "", {}}));
  ASSERT_TRUE(pools.Open("c", path(), kBudget));
  EXPECT_EQ(Left(), kUnits - 25);
}

TEST_F(MemoryPoolsTest, AnotherLimitFillsItAnew) {
  MemoryPools pools = Make();
  ASSERT_TRUE(pools.Open("c", path(), kBudget));
  ASSERT_TRUE(pools.Open("c", path(), 2 * kBudget));
  EXPECT_EQ(Left(), 2 * kUnits);
  ASSERT_TRUE(pools.Open("c", path(), kBudget));
  EXPECT_EQ(Left(), kUnits);
}

TEST_F(MemoryPoolsTest, ReplacesAFileThatIsNoFifo) {
  std::ofstream(path()) << "a file";
  MemoryPools pools = Make();
  ASSERT_TRUE(pools.Open("c", path(), kBudget));
  EXPECT_EQ(Left(), kUnits);
}

}  // namespace
}  // namespace weft::agent
