// SPDX-License-Identifier: Apache-2.0
#include "node-agent/agent/discovery/doorbells.h"

#include "lib/abi/control.h"
#include "node-agent/agent/testing/agent_fixture.h"

namespace weft::agent {
namespace {

namespace fs = std::filesystem;

class DoorbellsTest : public testing::AgentFixture {
 protected:
  Doorbells doorbells_{[this](ipc::Message message) { ToKeeper(std::move(message)); }};
};

TEST_F(DoorbellsTest, TheKeeperHasACopyOfEachSocketAndAnswersIt) {
  ASSERT_TRUE(doorbells_.Open("pod", folder()));
  EXPECT_TRUE(fs::is_socket(folder() + "/" WEFT_DOORBELL_NAME));
  EXPECT_EQ(Last<ipc::Keep>().key, "doorbell/pod");
  EXPECT_TRUE(Last<ipc::Keep>().fd.valid());
  EXPECT_EQ(Last<ipc::ListenDoorbell>().name, "pod");
  EXPECT_EQ(doorbells_.Names(), std::vector<std::string>{"pod"});
  doorbells_.Close("pod");
  EXPECT_EQ(Last<ipc::CloseDoorbell>().name, "pod");
  EXPECT_EQ(Last<ipc::Drop>().key, "doorbell/pod");
  EXPECT_TRUE(doorbells_.Names().empty());
}

TEST_F(DoorbellsTest, AKeptSocketIsNotMadeAgain) {
  ASSERT_TRUE(doorbells_.Open("pod", folder()));
  ipc::Kept kept{"doorbell/pod", "", std::move(Last<ipc::Keep>().fd)};
  Doorbells next([this](ipc::Message message) { ToKeeper(std::move(message)); });
  ASSERT_TRUE(next.TakeKept(kept));
  ASSERT_TRUE(next.Open("pod", folder()));
  EXPECT_EQ(Count<ipc::Keep>(), 1u);
  EXPECT_EQ(Count<ipc::ListenDoorbell>(), 2u);
  ipc::Kept other{"journal/shop", "", {}};
  EXPECT_FALSE(next.TakeKept(other));
}

TEST_F(DoorbellsTest, AFolderThatIsNotThereIsAnError) {
  EXPECT_FALSE(doorbells_.Open("pod", folder() + "/none"));
}

}  // namespace
}  // namespace weft::agent
