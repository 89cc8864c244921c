// SPDX-License-Identifier: Apache-2.0
#include "node-agent/agent/discovery/control_areas.h"
#include "lib/base/copy_fd.h"

#include <sys/mman.h>
#include <unistd.h>

#include "lib/abi/control.h"
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
  EXPECT_FALSE(areas.Adopt("", 7, std::move(memory)));
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

}  // namespace
}  // namespace weft::agent
