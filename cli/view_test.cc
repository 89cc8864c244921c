// SPDX-License-Identifier: Apache-2.0
// Exit statuses, JSON, and traces that are broken in every way: what is readable is shown.
#include "cli/view.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <nlohmann/json.hpp>
#include <string>

#include "cli/capture.h"
#include "cli/open_trace.h"
#include "lib/ctf/test_trace.h"
#include "lib/ctf/trace_reader.h"

namespace weft::cli {
namespace {

using ctf::Appended;
using ctf::ReadAll;
using ctf::RecordBuilder;
using ctf::TempFolder;
using ctf::TestTrace;

// One channel, one CPU, three packets of two events { n = 0 } to { n = 5 }.
class ViewTest : public testing::Test {
 protected:
  ViewTest() {
    trace.Begin();
    const ctf::Channel& channel = trace.AddChannel({.name = "c"});
    const ctf::EventClass& event =
        trace.AddEvent(0, channel, {.name = "p:e", .fields = {{.name = "n", .elem_size = 1}}});
    stream = trace.AddStream(channel, 0);
    for (uint8_t n = 0; n < 6; n++) {
      RecordBuilder body;
      body.Fixed(n);
      EXPECT_EQ(trace.writer(stream).Append(TestTrace::kStart + n, channel, event, body.body()),
                Appended::kOk);
      if (n % 2 == 1) trace.Finish(stream, 0, 0);
    }
  }

  // The values of n that are shown.
  static std::string Shown(const Captured& viewed) {
    std::string shown;
    for (size_t at = 0; (at = viewed.out.find("n = ", at)) != std::string::npos; at += 4) {
      shown += viewed.out[at + 4];
    }
    return shown;
  }
  static size_t Lines(const std::string& text) {
    return static_cast<size_t>(std::count(text.begin(), text.end(), '\n'));
  }
  void Write(const std::string& name, std::string_view bytes) {
    std::ofstream(trace.path() + "/" + name, std::ios::binary) << bytes;
  }

  TestTrace trace;
  size_t stream = 0;
};

constexpr size_t kPacket = 84 + 2 * 4;  // each of the three

TEST_F(ViewTest, ShowsAGoodTrace) {
  const Captured viewed = View({.folder = trace.path()});
  EXPECT_EQ(viewed.status, kShownAll);
  EXPECT_EQ(viewed.err, "");
  EXPECT_EQ(Shown(viewed), "012345");
  EXPECT_EQ(Shown(View({.folder = trace.path(), .limit = 2})), "01");
  const Captured none = View({.folder = trace.path(), .limit = 0});
  EXPECT_EQ(none.status, kShownAll);
  EXPECT_EQ(none.out + none.err, "");
}

TEST_F(ViewTest, ColoursAreOffWhereThereIsNoTerminal) {
  EXPECT_EQ(View({.folder = trace.path()}).out.find('\033'), std::string::npos);
}

TEST_F(ViewTest, ReportsMissingInputWithItsOwnStatus) {
  const TempFolder empty;
  for (const std::string& folder :
       {empty.path() + "/none", empty.path(), trace.path() + "/metadata"}) {
    const Captured viewed = View({.folder = folder});
    EXPECT_EQ(viewed.status, kNoTrace);
    EXPECT_EQ(viewed.out, "");
    EXPECT_EQ(Lines(viewed.err), 1U) << viewed.err;
    EXPECT_NE(viewed.err.find(folder), std::string::npos) << viewed.err;
  }
}

TEST_F(ViewTest, EveryCutOfAStreamShowsTheWholePackets) {
  const std::string bytes = ReadAll(trace.file(stream));
  ASSERT_EQ(bytes.size(), 84 + 3 * kPacket);
  for (size_t size = 0; size < bytes.size(); size++) {
    Write("c_0", bytes.substr(0, size));
    const Captured viewed = View({.folder = trace.path()});
    const size_t packets = size < 84 ? 0 : (size - 84) / kPacket;
    EXPECT_EQ(Shown(viewed), std::string("012345").substr(0, packets * 2)) << size;
    const bool whole = size == 0 || (size >= 84 && (size - 84) % kPacket == 0);
    EXPECT_EQ(viewed.status, whole ? kShownAll : kDamaged) << size;
    EXPECT_EQ(Lines(viewed.err), whole ? 0U : 1U) << viewed.err;
  }
}

TEST_F(ViewTest, ABrokenEventEndsItsPacketOnly) {
  std::string bytes = ReadAll(trace.file(stream));
  bytes[84 + kPacket + 84] = static_cast<char>(9 << 2);  // id 9 in the second packet's first event
  Write("c_0", bytes);
  const Captured viewed = View({.folder = trace.path()});
  EXPECT_EQ(viewed.status, kDamaged);
  EXPECT_EQ(Shown(viewed), "0145");
  EXPECT_EQ(Lines(viewed.err), 1U);
  EXPECT_NE(viewed.err.find("unknown id 9"), std::string::npos) << viewed.err;
}

TEST_F(ViewTest, EveryChangedByteIsSurvived) {
  const std::string good = ReadAll(trace.file(stream));
  for (size_t at = 0; at < good.size(); at++) {
    for (const int flip : {0x01, 0x80, 0xff}) {
      std::string bytes = good;
      bytes[at] = static_cast<char>(bytes[at] ^ flip);
      Write("c_0", bytes);
      const Captured viewed = View({.folder = trace.path()});
      EXPECT_TRUE(viewed.status == kShownAll || viewed.status == kDamaged);
      EXPECT_LE(Shown(viewed).size(), 60U);
    }
  }
}

TEST_F(ViewTest, OtherFilesAndTracesDoNotHideTheGoodOne) {
  Write("notes.txt", "not a packet");
  std::filesystem::create_directories(trace.path() + "/sub/broken");
  Write("sub/broken/metadata", "trace {");
  Write("sub/broken/c_0", "x");
  ASSERT_EQ(::mkfifo((trace.path() + "/fifo").c_str(), 0600), 0);
  const Captured viewed = View({.folder = trace.path()});
  EXPECT_EQ(viewed.status, kDamaged);
  EXPECT_EQ(Shown(viewed), "012345");
  EXPECT_EQ(Lines(viewed.err), 2U) << viewed.err;
}

TEST_F(ViewTest, ReportsFoldersThatLieTooDeep) {
  std::string folder = trace.path();
  for (int i = 0; i <= ctf::SearchLimits().depth; i++) folder += "/d";
  std::filesystem::create_directories(folder);
  std::filesystem::copy(trace.path() + "/metadata", folder);
  const Captured viewed = View({.folder = trace.path()});
  EXPECT_EQ(viewed.status, kDamaged);
  EXPECT_EQ(Shown(viewed), "012345");
  EXPECT_EQ(Lines(viewed.err), 1U) << viewed.err;
  EXPECT_NE(viewed.err.find(folder + ": "), std::string::npos) << viewed.err;
  const Captured below = View({.folder = trace.path() + "/d"});
  EXPECT_EQ(below.status, kShownAll) << below.err;
}

TEST_F(ViewTest, EndsTheSearchInTooManyFoldersOrFiles) {
  for (int i = 0; i < 9; i++) {
    std::filesystem::create_directories(trace.path() + "/" + std::to_string(i % 3) + "/" +
                                        std::to_string(i));
  }
  // 13 folders with their own; 12 and two files.
  EXPECT_TRUE(ctf::TraceReader::Open(trace.path(), {.folders = 13, .entries = 14}));
  for (const ctf::SearchLimits limits : {ctf::SearchLimits{.folders = 12}, {.entries = 13}}) {
    const auto reader = ctf::TraceReader::Open(trace.path(), limits);
    ASSERT_FALSE(reader);
    EXPECT_EQ(reader.error().code, ErrorCode::kLimit);
    EXPECT_TRUE(reader.error().message.starts_with(trace.path() + ": the search for traces ended"));
    EXPECT_TRUE(reader.error().message.ends_with("name the folder of one trace, or of fewer"));
  }
}

TEST_F(ViewTest, IgnoresPartialMetadataFragment) {
  trace.Append("metadata", "event {\n\tname = \"hal");
  const Captured viewed = View({.folder = trace.path()});
  EXPECT_EQ(viewed.status, kDamaged);
  EXPECT_EQ(Shown(viewed), "012345");
  EXPECT_EQ(Lines(viewed.err), 1U) << viewed.err;
}

TEST_F(ViewTest, APacketOfAnotherTraceIsRefused) {
  std::string bytes = ReadAll(trace.file(stream));
  bytes[84 + 4] ^= 1;  // UUID of the second packet
  Write("c_0", bytes);
  const Captured viewed = View({.folder = trace.path()});
  EXPECT_EQ(viewed.status, kDamaged);
  EXPECT_NE(viewed.err.find("another trace"), std::string::npos) << viewed.err;
}

TEST_F(ViewTest, ADamagedUuidOfTheFirstPacketDoesNotHideTheOthers) {
  std::string bytes = ReadAll(trace.file(stream));
  bytes[84 + 4] ^= 1;  // behind the magic number of the first packet with events
  bytes.erase(0, 84);
  Write("c_0", bytes);
  const Captured viewed = View({.folder = trace.path()});
  EXPECT_EQ(viewed.status, kDamaged);
  EXPECT_EQ(Shown(viewed), "012345");
  EXPECT_EQ(Lines(viewed.err), 1U) << viewed.err;
}

TEST_F(ViewTest, JsonIsOneObjectPerLine) {
  trace.Finish(stream, 3, 0);
  const Captured viewed = View({.folder = trace.path(), .json = true});
  EXPECT_EQ(viewed.status, kShownAll);
  std::istringstream lines(viewed.out);
  std::string line;
  std::vector<nlohmann::json> objects;
  while (std::getline(lines, line)) {
    objects.push_back(nlohmann::json::parse(line, nullptr, false));
    ASSERT_FALSE(objects.back().is_discarded()) << line;
  }
  ASSERT_EQ(objects.size(), 7U);
  EXPECT_EQ(objects[2]["event"], "p:e");
  EXPECT_EQ(objects[2]["hostname"], "host");
  EXPECT_EQ(objects[2]["time_ns"], TestTrace::kStart + 2);
  EXPECT_EQ(objects[2]["time"], "2026-11-21T10:30:00.000000002Z");
  EXPECT_EQ(objects[2]["packet"]["cpu_id"], 0);
  EXPECT_EQ(objects[2]["payload"]["n"], 2);
  EXPECT_EQ(objects[6]["discarded_events"], 3);
}

TEST(ViewJsonTest, EveryKindOfField) {
  TestTrace trace;
  trace.Begin();
  const ctf::Channel& channel = trace.AddChannel(
      {.name = "c", .contexts = {{WEFT_CONTEXT_APP, "a:b"}, {WEFT_CONTEXT_PROCNAME, ""}}});
  const EventDescription description{
      .name = "p:e",
      .fields = {{.name = "u", .elem_size = 8, .base = 16},
                 {.name = "i", .flags = WEFT_FIELD_SIGNED, .elem_size = 2},
                 {.name = "f", .kind = FieldKind::kFloat, .elem_size = 8},
                 {.name = "nan", .kind = FieldKind::kFloat, .elem_size = 4},
                 {.name = "s", .kind = FieldKind::kString},
                 {.name = "e",
                  .kind = FieldKind::kEnum,
                  .elem_size = 1,
                  .mappings = {{"A", 1, 1}, {"B", 0, 5}}},
                 {.name = "q", .kind = FieldKind::kSequence, .elem_size = 2, .length_size = 8}}};
  const ctf::EventClass& event = trace.AddEvent(0, channel, description);
  const size_t stream = trace.AddStream(channel, 0);
  RecordBuilder body;
  body.Context(uint8_t{WEFT_DYNAMIC_FLOAT})
      .Context(0.5F)
      .ContextBytes(std::string("me\0\0\0\0\0\0\0\0\0\0\0\0\0\0", 16));
  body.Fixed(~uint64_t{0})
      .Fixed(int16_t{-2})
      .Fixed(0.1)
      .Fixed(std::numeric_limits<float>::quiet_NaN());
  body.String("q\"\\\n\xc3\xbc")
      .Fixed(uint8_t{1})
      .Fixed(uint32_t{2})
      .Segment(std::string_view("a\0b\0", 4));
  ASSERT_EQ(trace.writer(stream).Append(TestTrace::kStart, channel, event, body.body()),
            Appended::kOk);
  trace.Finish(stream, 0, 0);
  const auto json = nlohmann::json::parse(View({.folder = trace.path(), .json = true}).out);
  EXPECT_EQ(json["context"]["_app_a_b"], 0.5);
  EXPECT_EQ(json["context"]["procname"], "me");
  const auto& payload = json["payload"];
  EXPECT_EQ(payload["u"], ~uint64_t{0});
  EXPECT_EQ(payload["i"], -2);
  EXPECT_EQ(payload["f"], 0.1);
  EXPECT_TRUE(payload["nan"].is_null());
  EXPECT_EQ(payload["s"], "q\"\\\n\xc3\xbc");
  EXPECT_EQ(payload["e"], nlohmann::json::parse(R"({"value":1,"labels":["A","B"]})"));
  EXPECT_EQ(payload["q"], nlohmann::json::parse("[97,98]"));
}

TEST(ViewTextTest, EmptyTextIsEmpty) {
  TestTrace trace;
  trace.Begin();
  const ctf::Channel& channel = trace.AddChannel({.name = "c"});
  const ctf::EventClass& event = trace.AddEvent(
      0, channel, {.name = "p:e", .fields = {{.name = "s", .kind = FieldKind::kString}}});
  const size_t stream = trace.AddStream(channel, 0);
  for (const char* text : {"full", ""}) {
    RecordBuilder body;
    body.String(text);
    ASSERT_EQ(trace.writer(stream).Append(TestTrace::kStart, channel, event, body.body()),
              Appended::kOk);
  }
  trace.Finish(stream, 0, 0);
  EXPECT_NE(View({.folder = trace.path()}).out.find("{ s = \"\" }"), std::string::npos);
}

TEST(ViewTextTest, MoreStreamsThanTheUsualLimitOfFiles) {
  TestTrace trace;
  trace.Begin();
  const ctf::Channel& channel = trace.AddChannel({.name = "c"});
  const ctf::EventClass& event = trace.AddEvent(0, channel, {.name = "p:e"});
  for (uint32_t cpu = 0; cpu < 40; cpu++) {
    const size_t stream = trace.AddStream(channel, cpu);
    ASSERT_EQ(trace.writer(stream).Append(TestTrace::kStart, channel, event, {}), Appended::kOk);
    trace.Finish(stream, 0, 0);
  }
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &before), 0);
  const rlimit low{30, before.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &low), 0);
  const Captured viewed = View({.folder = trace.path()});
  EXPECT_EQ(viewed.status, kShownAll) << viewed.err;
  EXPECT_EQ(std::count(viewed.out.begin(), viewed.out.end(), '\n'), 40);
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &before), 0);
}

TEST(ViewWriteTest, AFullOutputIsAnError) {
  TestTrace trace;
  trace.Begin();
  const ctf::Channel& channel = trace.AddChannel({.name = "c"});
  const ctf::EventClass& event = trace.AddEvent(0, channel, {.name = "p:e"});
  const size_t stream = trace.AddStream(channel, 0);
  ASSERT_EQ(trace.writer(stream).Append(TestTrace::kStart, channel, event, {}), Appended::kOk);
  trace.Finish(stream, 0, 0);
  std::FILE* full = std::fopen("/dev/full", "w");
  std::FILE* err = std::tmpfile();
  EXPECT_EQ(RunView({.folder = trace.path()}, full, err), kNotWritten);
  std::fclose(full);
  std::fclose(err);
}

}  // namespace
}  // namespace weft::cli
