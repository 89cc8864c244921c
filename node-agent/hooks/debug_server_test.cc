// SPDX-License-Identifier: Apache-2.0
// Debug files from servers. The servers here are folders (file:), which libdebuginfod reads, too;
// tests/local/functions_types_test.py has real ones.
#include "node-agent/hooks/debug_server.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <thread>

#include "node-agent/hooks/debug_notes.h"
#include "node-agent/hooks/limits.h"

namespace weft::hooks {
namespace {

namespace fs = std::filesystem;

class Servers : public ::testing::Test {
 protected:
  void SetUp() override {
    char name[] = "/tmp/weft-debug-server-XXXXXX";
    ASSERT_NE(mkdtemp(name), nullptr);
    top_ = name;
    // In a cluster the download is another user's work.
    ASSERT_EQ(chmod(name, 0755), 0);
    const UniqueFd library(open(WEFT_TYPED_LIBRARY, O_RDONLY | O_CLOEXEC));
    build_id_ = NotesOf(library.get())->build_id;
    Offer(build_id_, WEFT_TYPED_LIBRARY);
  }
  void TearDown() override { fs::remove_all(top_); }

  void Offer(const std::string& build_id, const std::string& file) const {
    fs::create_directories(top_ + "/server/buildid/" + build_id);
    fs::copy_file(file, top_ + "/server/buildid/" + build_id + "/debuginfo");
  }

  [[nodiscard]] DebugServerSettings Settings() const {
    return {.urls = "file://" + top_ + "/server",
            .folder = top_ + "/cache",
            .max_file_bytes = kMaxDebugFileBytes,
            .is_own_folder = true,
            .program = WEFT_DEBUGINFOD_PROGRAM};
  }

  // Asks until there is an answer.
  static Result<UniqueFd> Wait(DebugServer& server, const std::string& build_id) {
    for (;;) {
      auto file = server.Find(build_id, "pod");
      if (file || file.error().code != ErrorCode::kTimeout) return file;
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
  }

  std::string top_, build_id_;
};

TEST_F(Servers, GiveAFileThatIsThereAtOnceTheNextTime) {
  DebugServer server(Settings());
  EXPECT_EQ(server.Find(build_id_, "pod").error().code, ErrorCode::kTimeout);
  const auto file = Wait(server, build_id_);
  ASSERT_TRUE(file) << file.error().message;
  EXPECT_TRUE(NotesOf(file->get())->has_types);
  fs::remove_all(top_ + "/server");
  DebugServer next(Settings());
  EXPECT_TRUE(next.Find(build_id_, "pod"));
  EXPECT_EQ(next.answers(), 0U);
}

TEST_F(Servers, AreAskedOnceForWhatTheyDoNotHave) {
  const std::string unknown(40, 'a');
  DebugServer server(Settings());
  EXPECT_NE(Wait(server, unknown).error().message.find("no server has its debug file"),
            std::string::npos);
  EXPECT_EQ(server.Find(unknown, "another pod").error().code, ErrorCode::kNotFound);
  EXPECT_EQ(server.answers(), 1U);
}

TEST_F(Servers, FileOfAnotherBuildIdIsRefusedAndRemoved) {
  const std::string other(40, 'b');
  Offer(other, WEFT_TYPED_LIBRARY);
  DebugServer server(Settings());
  EXPECT_NE(Wait(server, other).error().message.find("not its debug file"), std::string::npos);
  EXPECT_FALSE(fs::exists(top_ + "/cache/" + other + "/debuginfo"));
}

TEST_F(Servers, AreNotAskedForWhatIsNoBuildId) {
  DebugServer server(Settings());
  for (const char* text : {"", "ab", "../../../../etc/passwd", "ABCDEFABCDEFABCDEFAB",
                           "abcdefabcdefabcdefab?section=", "abcdefabcdefabcdefa"})
    EXPECT_EQ(server.Find(text, "pod").error().code, ErrorCode::kNotFound) << text;
  EXPECT_EQ(server.Find(std::string(2 * kMaxBuildIdBytes + 2, 'a'), "pod").error().code,
            ErrorCode::kNotFound);
  EXPECT_EQ(server.answers(), 0U);
}

TEST_F(Servers, AnswerAPodForSoManyFilesOnly) {
  DebugServer server(Settings());
  const auto ask = [&](size_t number, const char* pod) {
    std::string build_id(40, 'c');
    build_id.replace(0, 4, std::to_string(1000 + number));
    return server.Find(build_id, pod).error().code;
  };
  for (size_t i = 0; i < kMaxAskedFiles; ++i) EXPECT_EQ(ask(i, "pod"), ErrorCode::kTimeout);
  EXPECT_EQ(ask(kMaxAskedFiles, "pod"), ErrorCode::kLimit);
  EXPECT_EQ(ask(kMaxAskedFiles, "another pod"), ErrorCode::kTimeout);
}

TEST_F(Servers, CacheLosesWhatWasUsedLongestAgo) {
  const std::string cache = top_ + "/cache";
  for (int i = 0; i < 4; ++i) {
    const std::string folder = cache + "/" + std::to_string(i);
    fs::create_directories(folder);
    std::ofstream(folder + "/debuginfo") << std::string(100000, 'x');
    const timespec times[]{{.tv_sec = 1000 + i, .tv_nsec = 0}, {.tv_sec = 1000 + i, .tv_nsec = 0}};
    ASSERT_EQ(utimensat(AT_FDCWD, (folder + "/debuginfo").c_str(), times, 0), 0);
  }
  PruneCache(cache, 1000000, 3);
  EXPECT_FALSE(fs::exists(cache + "/0"));
  EXPECT_TRUE(fs::exists(cache + "/1"));
  PruneCache(cache, 150000, 3);
  EXPECT_FALSE(fs::exists(cache + "/2"));
  EXPECT_TRUE(fs::exists(cache + "/3"));
}

}  // namespace
}  // namespace weft::hooks
