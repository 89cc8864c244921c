// SPDX-License-Identifier: Apache-2.0
#include "node-agent/agent/discovery/doorbells.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/abi/control.h"
#include "node-agent/agent/testing/agent_fixture.h"

namespace weft::agent {
namespace {

namespace fs = std::filesystem;

class DoorbellsTest : public testing::AgentFixture {
 protected:
  // Returns the instances of the names that are read at once, and how often they were saved.
  std::vector<uint64_t> Read(Doorbells& doorbells) {
    std::vector<uint64_t> instances;
    (void)doorbells.ReadNames(
        [&](const std::string& doorbell, const weft_doorbell& name) {
          EXPECT_EQ(doorbell, "pod");
          instances.push_back(name.instance);
        },
        [&] { ++saved_; });
    return instances;
  }
  // Opens the FIFO as a process does.
  [[nodiscard]] UniqueFd OpenNames() const {
    return UniqueFd(
        open((folder() + "/" WEFT_NAMES_NAME).c_str(), O_RDWR | O_NONBLOCK | O_CLOEXEC));
  }
  static bool Write(const UniqueFd& names, uint64_t instance) {
    const weft_doorbell name{.magic = WEFT_DOORBELL_MAGIC,
                             .kind = WEFT_DOORBELL_MISSING,
                             .instance = instance,
                             .channel_id = 9,
                             .reserved = 0};
    return write(names.get(), &name, sizeof(name)) == ssize_t{sizeof(name)};
  }

  Doorbells doorbells_{[this](ipc::Message message) { ToKeeper(std::move(message)); }};
  int saved_ = 0;
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
  EXPECT_EQ(Count<ipc::Drop>(), 2u) << "of the socket and of the FIFO";
  EXPECT_TRUE(doorbells_.Names().empty());
}

TEST_F(DoorbellsTest, AKeptSocketIsNotMadeAgain) {
  ASSERT_TRUE(doorbells_.Open("pod", folder()));
  ipc::Kept kept{"doorbell/pod", "", std::move(Last<ipc::Keep>().fd)};
  Doorbells next([this](ipc::Message message) { ToKeeper(std::move(message)); });
  ASSERT_TRUE(next.TakeKept(kept));
  ASSERT_TRUE(next.Open("pod", folder()));
  EXPECT_EQ(Count<ipc::Keep>(), 3u) << "the FIFO was not kept";
  EXPECT_EQ(Count<ipc::ListenDoorbell>(), 2u);
  ipc::Kept other{"journal/shop", "", {}};
  EXPECT_FALSE(next.TakeKept(other));
}

TEST_F(DoorbellsTest, NamesWaitUntilTheyAreRead) {
  ASSERT_TRUE(doorbells_.Open("pod", folder()));
  struct stat st{};
  ASSERT_EQ(stat((folder() + "/" WEFT_NAMES_NAME).c_str(), &st), 0);
  EXPECT_EQ(st.st_mode, static_cast<mode_t>(S_IFIFO | 0666));
  EXPECT_TRUE(Read(doorbells_).empty());
  EXPECT_EQ(saved_, 0);
  EXPECT_TRUE(Write(OpenNames(), 1) && Write(OpenNames(), 2));
  EXPECT_EQ(Read(doorbells_), (std::vector<uint64_t>{1, 2}));
  EXPECT_EQ(saved_, 1);
  EXPECT_TRUE(Read(doorbells_).empty());
}

TEST_F(DoorbellsTest, AllNamesOfAFullFifoAreReadOnce) {
  ASSERT_TRUE(doorbells_.Open("pod", folder()));
  const UniqueFd names = OpenNames();
  uint64_t count = 0;
  while (Write(names, count + 1)) ++count;
  EXPECT_GE(count, 2048u);
  std::vector<uint64_t> read;
  for (std::vector<uint64_t> some; !(some = Read(doorbells_)).empty();)
    read.insert(read.end(), some.begin(), some.end());
  ASSERT_EQ(read.size(), count);
  for (uint64_t i = 0; i < count; ++i) ASSERT_EQ(read[i], i + 1);
}

// The agent died between reading and saving.
TEST_F(DoorbellsTest, NamesThatWereNotSavedComeAgain) {
  ASSERT_TRUE(doorbells_.Open("pod", folder()));
  EXPECT_TRUE(Write(OpenNames(), 7));
  (void)doorbells_.ReadNames([](const std::string&, const weft_doorbell&) {},
                             [&] { EXPECT_EQ(Read(doorbells_), std::vector<uint64_t>{7}); });
}

TEST_F(DoorbellsTest, OtherBytesAreNoNames) {
  ASSERT_TRUE(doorbells_.Open("pod", folder()));
  const UniqueFd names = OpenNames();
  EXPECT_EQ(write(names.get(), "weft", 4), 4);
  EXPECT_TRUE(Read(doorbells_).empty());
  EXPECT_TRUE(Write(names, 3));
  EXPECT_EQ(Read(doorbells_), std::vector<uint64_t>{3});
}

TEST_F(DoorbellsTest, AFolderThatIsNotThereIsAnError) {
  EXPECT_FALSE(doorbells_.Open("pod", folder() + "/none"));
}

}  // namespace
}  // namespace weft::agent
