// SPDX-License-Identifier: Apache-2.0
#include "node-agent/agent/discovery/control_areas.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "lib/abi/control.h"
#include "lib/base/copy_fd.h"
#include "lib/control/testing.h"
#include "node-agent/agent/base/limits.h"
#include "node-agent/agent/testing/agent_fixture.h"

namespace weft::agent {
namespace {

namespace fs = std::filesystem;

class ControlAreasTest : public testing::AgentFixture {
 protected:
  ControlAreas Make() {
    return {{.slot_count = 1, .clock = WEFT_CLOCK_MONOTONIC},
            finder_,
            [this](const std::string& container) {
              asked_for_.push_back(container);
              return std::vector<control::ChannelSpec>{};
            },
            [this](ipc::Message message) { ToKeeper(std::move(message)); },
            [this](std::string text) { notes_.push_back(std::move(text)); }};
  }

  std::vector<std::string> asked_for_, notes_;
  Finder finder_{[](const FoundMemory&) { return Finder::Verdict::kKnown; }};
};

TEST_F(ControlAreasTest, AContainersFileIsMadeOnceAndGoneOnWith) {
  const std::string path = folder() + "/main.ctl";
  ControlAreas areas = Make();
  EXPECT_FALSE(areas.Has("pod/main"));
  ASSERT_TRUE(areas.Open("pod/main", path));
  EXPECT_TRUE(areas.Has("pod/main"));
  EXPECT_EQ(fs::file_size(path), uintmax_t{WEFT_CONTROL_TOTAL_BYTES});
  ASSERT_TRUE(areas.Publish("pod/main"));
  EXPECT_EQ(asked_for_, std::vector<std::string>{"pod/main"});
  areas.Close("pod/main");
  EXPECT_FALSE(areas.Has("pod/main"));
  ControlAreas next = Make();
  EXPECT_TRUE(next.Open("pod/main", path));
  EXPECT_TRUE(next.Publish("pod/main"));
}

TEST_F(ControlAreasTest, PublishingToAContainerWithoutAFileIsNoError) {
  EXPECT_TRUE(Make().Publish("kernel"));
}

TEST_F(ControlAreasTest, MemoryThatIsNoControlAreaIsNotAdopted) {
  ControlAreas areas = Make();
  UniqueFd memory(memfd_create("weft-control", MFD_CLOEXEC));
  EXPECT_FALSE(areas.Adopt("", 7, std::move(memory), {}));
  EXPECT_EQ(Count<ipc::Keep>(), 0u);
}

TEST_F(ControlAreasTest, AKeptAreaThatCannotBeAdoptedAgainIsDropped) {
  ControlAreas areas = Make();
  ipc::Kept kept{"control/7", "pod/main", UniqueFd(memfd_create("weft-control", MFD_CLOEXEC))};
  ASSERT_TRUE(areas.TakeKept(kept));
  EXPECT_EQ(Count<ipc::Drop>(), 0u) << "sessions and containers come first";
  areas.Restored();
  EXPECT_EQ(Last<ipc::Drop>().key, "control/7");
  ipc::Kept other{"doorbell/pod", "", {}};
  EXPECT_FALSE(areas.TakeKept(other));
}

// A process that was not looked at yet may map it: what it is told holds on.
TEST_F(ControlAreasTest, AnAreaThatNoProcessWasSeenWithKeepsItsContents) {
  ControlAreas areas = Make();
  const UniqueFd memory = control::MakeProcessArea();
  const uint32_t word = 7;
  ASSERT_EQ(pwrite(memory.get(), &word, sizeof(word), WEFT_CONTROL_ARENA_OFFSET), 4);
  ASSERT_TRUE(areas.Adopt("pod/main", 7, CopyFd(memory), {}));
  areas.DropUnmapped();
  EXPECT_TRUE(areas.AdoptedFor("pod/main").empty());
  uint32_t now = 0;
  EXPECT_EQ(pread(memory.get(), &now, sizeof(now), WEFT_CONTROL_ARENA_OFFSET), 4);
  EXPECT_NE(now, 0u);
}

TEST_F(ControlAreasTest, OneProcessOrNamespaceLeavesRoomForOthers) {
  ControlAreas areas = Make();
  uint64_t inode = 1;
  const auto adopt = [&](const std::string& owner, int32_t pid) {
    return areas.Adopt("pod/main", inode++, control::MakeProcessArea(),
                       {.owner = owner, .pid = pid});
  };
  for (size_t i = 0; i < kMaxAdoptedOfProcess; ++i) ASSERT_TRUE(adopt("greedy", 1));
  for (int i = 0; i < 3; ++i) EXPECT_EQ(adopt("greedy", 1).error().code, ErrorCode::kLimit);
  EXPECT_EQ(notes_.size(), 1u) << "once";
  for (size_t i = kMaxAdoptedOfProcess; i < kMaxAdoptedOfOwner; ++i)
    ASSERT_TRUE(adopt("greedy", 100 + static_cast<int32_t>(i)));
  EXPECT_EQ(adopt("greedy", 2).error().code, ErrorCode::kLimit);
  EXPECT_TRUE(adopt("other", 3));
  areas.DropAdopted();
  EXPECT_TRUE(adopt("greedy", 1));
}

}  // namespace
}  // namespace weft::agent
