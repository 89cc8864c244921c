// SPDX-License-Identifier: Apache-2.0
#include "relay/api/trace_files.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "lib/ctf/packet_writer.h"
#include "lib/store/store.h"
#include "relay/api/archive_source.h"

namespace weft::relay_api {
namespace {

namespace fs = std::filesystem;

const std::string kUid = "6f1c0b0e-5b1f-4c44-9a61-0d6f4ad6ac52";
const std::string kFolder = "shop/sales/" + kUid;
const std::string kTrace = kFolder + "/pod/main/" + kUid + "/ust/64-bit";

class TraceFilesTest : public testing::Test {
 protected:
  TraceFilesTest() {
    std::string pattern = testing::TempDir() + "weft-trace-files-XXXXXX";
    top_ = ::mkdtemp(pattern.data());
    files_.emplace(Folder());
    store::DirectoryFileMaker maker(Folder());
    auto store = store::TraceStore::Open(maker, kTrace);
    EXPECT_TRUE(store);
    EXPECT_TRUE(store->AppendMetadata("/* CTF 1.8 */\n\n"));
    const auto stream = store->AddStream("user", 0);
    EXPECT_TRUE(stream);
    for (int i = 0; i < 3; i++) {
      const auto packet = writer_.Finish(0, 100 * (i + 1));
      EXPECT_TRUE(store->WritePacket(*stream, packet));
      ends_.push_back(store->state(*stream).bytes);
    }
  }
  ~TraceFilesTest() override { fs::remove_all(top_); }

  UniqueFd Folder() { return UniqueFd(::open(top_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)); }
  void Append(const std::string& path, const std::string& bytes) {
    std::ofstream(top_ / path, std::ios::binary | std::ios::app) << bytes;
  }
  uint64_t SizeOf(const std::string& path) {
    const auto file = files_->OpenFile(path);
    return file ? file->size : UINT64_MAX;
  }

  fs::path top_;
  std::optional<TraceFiles> files_;
  ctf::PacketWriter writer_{ctf::StreamConfig{}};
  std::vector<uint64_t> ends_;
};

TEST_F(TraceFilesTest, ListsWhatIsStored) {
  fs::create_directories(top_ / "shop/other/not-a-uid");
  fs::create_directories(top_ / "shop/other" / kUid);
  Append(kTrace + "/user_0.3.0", "");  // where the stream goes on
  const auto all = files_->ListTraces("shop", "");
  ASSERT_TRUE(all);
  ASSERT_EQ(all->size(), 2U);
  EXPECT_EQ(all->at(1).name, "sales");
  EXPECT_EQ(all->at(1).uid, kUid);
  EXPECT_EQ(all->at(1).files, 2U);
  EXPECT_EQ(all->at(1).bytes, ends_.back() + 15);
  EXPECT_EQ(files_->ListTraces("shop", "other")->size(), 1U);
  EXPECT_TRUE(files_->ListTraces("nothing", "")->empty());
}

TEST_F(TraceFilesTest, MetadataStandsBeforeItsStreams) {
  const auto files = files_->ListFiles(kFolder);
  ASSERT_TRUE(files);
  ASSERT_EQ(files->size(), 2U);
  EXPECT_EQ(files->at(0).path, kTrace.substr(kFolder.size() + 1) + "/metadata");
  EXPECT_EQ(files->at(0).size, 15U);
  EXPECT_EQ(files->at(1).size, ends_.back());
  EXPECT_EQ(files_->ListFiles("shop/sales/none").error().code, ErrorCode::kNotFound);
}

TEST_F(TraceFilesTest, NarrowsStreamsToATime) {
  // Packets without events, of the times 100, 200 and 300.
  const auto bytes = [this](uint64_t since, uint64_t until) -> std::pair<uint64_t, uint64_t> {
    const auto files = files_->ListFiles(kFolder, {.range = {.since = since, .until = until}});
    EXPECT_EQ(files->at(0).size, 15U);  // metadata is whole
    if (files->size() < 2) return {0, 0};
    return {files->at(1).offset, files->at(1).size};
  };
  EXPECT_EQ(bytes(0, UINT64_MAX), std::pair(uint64_t{0}, ends_[2]));
  EXPECT_EQ(bytes(150, UINT64_MAX), std::pair(ends_[0], ends_[2]));
  EXPECT_EQ(bytes(0, 150), std::pair(uint64_t{0}, ends_[0]));
  EXPECT_EQ(bytes(101, 200), std::pair(ends_[0], ends_[1]));
  EXPECT_EQ(bytes(301, UINT64_MAX), std::pair(uint64_t{0}, uint64_t{0}));
  EXPECT_EQ(bytes(250, 100), std::pair(uint64_t{0}, uint64_t{0}));
}

TEST_F(TraceFilesTest, ListsTheFilesOfSomePods) {
  const auto count = [this](std::vector<std::string> pods) {
    const auto files = files_->ListFiles(kFolder, {.pods = std::move(pods)});
    return files ? files->size() : 1000;
  };
  EXPECT_EQ(count({"pod"}), 2U);
  EXPECT_EQ(count({"other", "pod"}), 2U);
  EXPECT_EQ(count({"other"}), 0U);
  EXPECT_EQ(count({"main"}), 0U);  // a container
}

// The bytes from `first` to before `end` of an archive.
std::string ReadArchive(TraceFiles& store, const std::vector<StoredFile>& files, uint64_t first,
                        uint64_t end, size_t block) {
  ArchiveSource source(store, kFolder, "t/", files, [](size_t) {});
  if (end > 0) source.Narrow(first, end);
  std::string body(source.bytes().value(), '\0');
  for (size_t at = 0; at < body.size();) {
    const auto got = source.Read({body.data() + at, std::min(block, body.size() - at)});
    if (!got || *got == 0) return "it ended early";
    at += *got;
  }
  return body;
}

TEST_F(TraceFilesTest, AnArchiveCanBeginAndEndAnywhere) {
  for (const Selection& selection : {Selection{}, Selection{.range = {.since = 150}}}) {
    const auto files = files_->ListFiles(kFolder, selection);
    ASSERT_EQ(files->size(), 2U);
    const std::string whole = ReadArchive(*files_, *files, 0, 0, 100);
    ASSERT_EQ(whole.size(), 6 * 512U);
    for (uint64_t first = 0; first < whole.size(); first++) {
      ASSERT_TRUE(ReadArchive(*files_, *files, first, whole.size(), 1000) == whole.substr(first))
          << first;
    }
    for (uint64_t end = 1; end < whole.size(); end += 7) {
      ASSERT_TRUE(ReadArchive(*files_, *files, end / 2, end, 50) ==
                  whole.substr(end / 2, end - end / 2))
          << end;
    }
    // The second file begins with its first packet of the time.
    const std::string stream = whole.substr(3 * 512, files->at(1).size - files->at(1).offset);
    EXPECT_EQ(stream.substr(0, 4), "\xc1\x1f\xfc\xc1");
    EXPECT_EQ(stream.size(), selection.is_all() ? ends_[2] : ends_[2] - ends_[0]);
  }
}

TEST_F(TraceFilesTest, SizesEndAtWholePackets) {
  const std::string stream = kTrace + "/user_0";
  EXPECT_EQ(SizeOf(stream), ends_[2]);
  const auto packet = writer_.Finish(0, 1000);
  const std::string bytes(reinterpret_cast<const char*>(packet.data()), packet.size());
  Append(stream, bytes.substr(0, bytes.size() / 2));
  EXPECT_EQ(SizeOf(stream), ends_[2]);
  Append(stream, bytes.substr(bytes.size() / 2));
  EXPECT_EQ(SizeOf(stream), ends_[2] + packet.size());
  Append(kTrace + "/metadata", "event {");
  EXPECT_EQ(SizeOf(kTrace + "/metadata"), 15U);
}

TEST_F(TraceFilesTest, AStreamThatWasCutBackIsMeasuredAnew) {
  const std::string stream = kTrace + "/user_0";
  EXPECT_EQ(SizeOf(stream), ends_[2]);
  fs::resize_file(top_ / stream, ends_[0]);
  EXPECT_EQ(SizeOf(stream), ends_[0]);
  // As long as before, with other packets.
  Append(stream, std::string(ends_[2] - ends_[0], '\0'));
  EXPECT_EQ(SizeOf(stream), ends_[0]);
}

TEST_F(TraceFilesTest, FollowsNoLinkAndLeavesNoFolder) {
  Append("secret", "secret");
  fs::create_symlink(top_ / "secret", top_ / kTrace / "link");
  fs::create_directory_symlink(top_ / "shop", top_ / kTrace / "shop");
  for (const std::string& path : {kTrace + "/link", kTrace + "/shop/sales", kTrace + "/../x",
                                  std::string("../") + top_.filename().string() + "/secret",
                                  (top_ / "secret").string(), kTrace}) {
    EXPECT_EQ(SizeOf(path), UINT64_MAX) << path;
  }
  EXPECT_EQ(files_->ListFiles(kFolder)->size(), 2U);
  EXPECT_EQ(files_->ListTraces("shop", "sales")->front().files, 2U);
}

}  // namespace
}  // namespace weft::relay_api
