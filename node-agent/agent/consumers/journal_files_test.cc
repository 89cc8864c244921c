// SPDX-License-Identifier: Apache-2.0
// Journals on disk, from one life of weft's processes to the next; closing a descriptor stands for
// the death of a process that had it.
#include "node-agent/agent/consumers/journal_files.h"

#include <unistd.h>

#include <fstream>

#include "lib/base/copy_fd.h"
#include "node-agent/agent/consumers/consumer_pool.h"
#include "node-agent/agent/testing/agent_fixture.h"

namespace weft::agent {
namespace {

namespace fs = std::filesystem;

class JournalFilesTest : public testing::AgentFixture {
 protected:
  [[nodiscard]] Result<JournalFile> OpenNow(const std::string& name = "shop") const {
    return files_.Open(name, JournalFiles::Deadline::clock::now());
  }
  void WriteNote(const std::string& text) const {
    std::ofstream(folder() + "/shop.json", std::ios::trunc) << text;
  }

  ipc::Loop loop_ = std::move(*ipc::Loop::Make());
  const JournalFiles files_{folder()};
};

TEST_F(JournalFilesTest, AJournalOutlivesAllProcessesThatHadIt) {
  JournalNote note;
  {
    const auto made = files_.Make("shop");
    ASSERT_TRUE(made) << made.error().message;
    note = made->note;
    ASSERT_EQ(pwrite(made->fd.get(), "position", 8, 0), 8);
  }
  const auto opened = OpenNow();
  ASSERT_TRUE(opened) << opened.error().message;
  char bytes[9] = {};
  EXPECT_EQ(pread(opened->fd.get(), bytes, 8, 0), 8);
  EXPECT_STREQ(bytes, "position");
  EXPECT_EQ(opened->note.realtime_offset_ns, note.realtime_offset_ns);
  EXPECT_EQ(opened->note.clock_uuid, note.clock_uuid);
  EXPECT_EQ(fs::status(folder() + "/shop").permissions() & fs::perms::mask,
            fs::perms::owner_read | fs::perms::owner_write);
}

TEST_F(JournalFilesTest, AJournalThatAProcessStillHasIsNotGivenOut) {
  auto made = files_.Make("shop");
  ASSERT_TRUE(made);
  UniqueFd of_consumer = CopyFd(made->fd);
  made->fd.reset();
  const auto opened = OpenNow();
  ASSERT_FALSE(opened);
  EXPECT_EQ(opened.error().code, ErrorCode::kTimeout);
  of_consumer.reset();
  EXPECT_TRUE(OpenNow());
}

TEST_F(JournalFilesTest, AJournalOfAnotherVersionOrBootIsNotGivenOut) {
  const std::string text = files_.Make("shop")->note.Text();
  ASSERT_TRUE(OpenNow());
  std::string other = text;
  other.replace(other.find("\"version\":"), 10, "\"version\":1");
  WriteNote(other);
  EXPECT_EQ(OpenNow().error().code, ErrorCode::kUnsupported);
  JournalNote note = *JournalNote::Parse(text);
  note.clock_uuid[0] ^= 1;
  WriteNote(note.Text());
  EXPECT_EQ(OpenNow().error().code, ErrorCode::kUnsupported);
  WriteNote("{}");
  EXPECT_EQ(OpenNow().error().code, ErrorCode::kCorrupt);
}

TEST_F(JournalFilesTest, ANewJournalTakesThePlaceOfTheOneThatIsThere) {
  ASSERT_EQ(pwrite(files_.Make("shop")->fd.get(), "position", 8, 0), 8);
  ASSERT_TRUE(files_.Make("shop"));
  EXPECT_EQ(fs::file_size(folder() + "/shop"), 0u);
}

TEST_F(JournalFilesTest, AJournalThatCannotBeMadeLeavesNothing) {
  fs::create_directory(folder() + "/shop.json");
  EXPECT_FALSE(files_.Make("shop"));
  EXPECT_FALSE(fs::exists(folder() + "/shop"));
}

TEST_F(JournalFilesTest, JournalsOfOtherConsumersAreRemoved) {
  for (const char* name : {"shop", "bank"}) ASSERT_TRUE(files_.Make(name));
  files_.KeepOnly({"shop"});
  EXPECT_TRUE(OpenNow());
  EXPECT_EQ(OpenNow("bank").error().code, ErrorCode::kNotFound);
  EXPECT_FALSE(fs::exists(folder() + "/bank.json"));
}

TEST_F(JournalFilesTest, WithoutAFolderAJournalIsMemory) {
  const JournalFiles memory;
  const auto made = memory.Make("shop");
  ASSERT_TRUE(made);
  EXPECT_EQ(pwrite(made->fd.get(), "x", 1, 0), 1);
  EXPECT_EQ(memory.Open("shop", {}).error().code, ErrorCode::kNotFound);
  memory.Remove("shop");
  memory.KeepOnly({});
}

TEST_F(JournalFilesTest, APoolGoesOnWithTheJournalThatTheKeeperLost) {
  const auto pool = [this](std::vector<std::string>& notes) {
    return std::make_unique<ConsumerPool>(
        loop_, [this](ipc::Message message) { ToKeeper(std::move(message)); },
        [&notes](std::string text) { notes.push_back(std::move(text)); },
        [](ConsumerLink&, const ipc::Message&) {}, files_);
  };
  std::vector<std::string> notes;
  auto first = pool(notes);
  first->Start("shop");
  EXPECT_EQ(Count<ipc::Keep>(), 1u);
  ASSERT_EQ(pwrite(Last<ipc::Keep>().fd.get(), "position", 8, 0), 8);
  // Agent, keeper and consumer are killed.
  first.reset();
  Last<ipc::Keep>().fd.reset();
  auto next = pool(notes);
  ASSERT_TRUE(next->TakeFromDisk({"shop", "bank"}));
  EXPECT_NE(next->Find("shop"), nullptr);
  EXPECT_EQ(next->Find("bank"), nullptr) << "it has no journal";
  EXPECT_EQ(Last<ipc::Keep>().key, "journal/shop");
  char bytes[9] = {};
  EXPECT_EQ(pread(Last<ipc::Keep>().fd.get(), bytes, 8, 0), 8);
  EXPECT_STREQ(bytes, "position");
  next->Stop("shop");
  EXPECT_TRUE(fs::is_empty(folder()));
  EXPECT_TRUE(notes.empty());
}

TEST_F(JournalFilesTest, WithAFolderThatIsFullRecordingGoesOnInMemory) {
  std::vector<std::string> notes;
  ConsumerPool pool(
      loop_, [this](ipc::Message message) { ToKeeper(std::move(message)); },
      [&notes](std::string text) { notes.push_back(std::move(text)); },
      [](ConsumerLink&, const ipc::Message&) {}, JournalFiles(folder() + "/not-there"));
  pool.Start("shop");
  EXPECT_NE(pool.Find("shop"), nullptr);
  EXPECT_EQ(Last<ipc::StartConsumer>().name, "shop");
  EXPECT_EQ(notes.size(), 1u);
}

}  // namespace
}  // namespace weft::agent
