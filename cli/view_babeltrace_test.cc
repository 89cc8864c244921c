// SPDX-License-Identifier: Apache-2.0
// What weft writes is read by babeltrace2 without a warning, and `weft view` prints the same text.
// Starts babeltrace2; for CTF 2 the one that WEFT_BABELTRACE2 names, since it takes 2.1 (./dev test
// fetches it where it can: scripts/newer_babeltrace2.sh). Without it those tests are skipped.
#include <gtest/gtest.h>

#include <cstdio>
#include <limits>
#include <string>

#include "cli/capture.h"
#include "cli/open_trace.h"
#include "cli/view.h"
#include "lib/ctf/test_trace.h"
#include "lib/ctf/text.h"
#include "lib/ctf/vpid_range.h"

namespace weft::cli {
namespace {

using ctf::Appended;
using ctf::RandomRecords;
using ctf::RecordBuilder;
using ctf::RunCommand;
using ctf::TestTrace;
using ctf::Version;

// babeltrace2 prints bytes that are no UTF-8, and control characters beyond ASCII, as they are;
// weft view as numbers.
std::string Escaped(std::string_view text) {
  std::string out;
  while (!text.empty()) {
    const size_t length = ctf::Utf8Length(text);
    const bool control = length == 2 && text[0] == '\xc2' && static_cast<uint8_t>(text[1]) < 0xa0;
    if (length == 0 || control) {
      char number[8];
      std::snprintf(number, sizeof(number), "\\x%02x", static_cast<uint8_t>(text[0]));
      out += number;
      text.remove_prefix(1);
    } else {
      out += text.substr(0, length);
      text.remove_prefix(length);
    }
  }
  return out;
}

class ViewBabeltraceTest : public testing::TestWithParam<Version> {
 protected:
  void SetUp() override {
    const ctf::BabeltraceProgram found = ctf::FindBabeltrace(GetParam());
    if (!found.Reads(GetParam())) {
      GTEST_SKIP() << "there is no babeltrace2 that reads this version of CTF";
    }
    program = found.program;
    minor = found.minor;
  }

  // Returns the text.
  std::string ExpectSame(const TestTrace& trace, size_t lines) {
    const auto theirs = RunCommand(program + " " + trace.path());
    const Captured ours = View({.folder = trace.path()});
    EXPECT_EQ(theirs.status, 0);
    EXPECT_EQ(theirs.err, "");
    EXPECT_EQ(ours.status, kShownAll);
    EXPECT_EQ(ours.err, "");
    EXPECT_EQ(ours.out, Escaped(theirs.out));
    EXPECT_EQ(std::count(ours.out.begin(), ours.out.end(), '\n'), static_cast<ptrdiff_t>(lines));
    return ours.out;
  }

  std::string program;
  int minor = 0;
};

TEST_P(ViewBabeltraceTest, EveryContext) {
  TestTrace trace(GetParam());
  trace.Begin();
  ctf::ChannelSchema schema{.name = "c"};
  RecordBuilder body;
  uint32_t count = 0;
  const weft_context_info* table = weft_context_table(&count);
  for (uint32_t i = 0; i < count; i++) {
    schema.contexts.push_back({table[i].id, "page-faults:x"});
    if (table[i].type == WEFT_CONTEXT_DYNAMIC) {
      body.Context(uint8_t{WEFT_DYNAMIC_DOUBLE}).Context(2.5);
    } else if (table[i].type == WEFT_CONTEXT_ADDRESSES) {
      body.Context(uint32_t{2}).Context(uint64_t{0x55aa}).Context(~uint64_t{i});
    } else {
      body.ContextBytes(std::string(table[i].size, static_cast<char>('a' + i % 26)));
    }
  }
  schema.contexts.push_back({WEFT_CONTEXT_APP, "second:one"});
  schema.contexts.push_back({WEFT_CONTEXT_APP, "second:one"});
  const ctf::Channel& channel = trace.AddChannel(schema);
  const ctf::EventClass& event = trace.AddEvent(0, channel, {.name = "p:e"});
  const size_t stream = trace.AddStream(channel, 0);
  for (uint8_t type = WEFT_DYNAMIC_NONE; type <= WEFT_DYNAMIC_STRING; type++) {
    RecordBuilder each = body;
    each.Context(type);
    static constexpr uint8_t kSizes[] = {0, 1, 2, 4, 8, 1, 2, 4, 8, 4, 8, 0};
    if (type == WEFT_DYNAMIC_STRING) each.Context(uint32_t{3}).ContextBytes("\"?\n");
    each.ContextBytes(std::string(kSizes[type], '\xc1'));
    each.Context(uint8_t{WEFT_DYNAMIC_NONE});
    ASSERT_EQ(trace.writer(stream).Append(TestTrace::kStart, channel, event, each.body()),
              Appended::kOk);
  }
  trace.Finish(stream, 0, 0);
  const std::string text = ExpectSame(trace, 12);
  EXPECT_NE(text.find("perf_thread_page_faults_x = "), std::string::npos);
  EXPECT_NE(text.find("_app_second_one = { \"\\\"\\?\\n\" }"), std::string::npos) << text;
}

TEST_P(ViewBabeltraceTest, ExtremeIntegersInEveryBaseSizeAndOrder) {
  TestTrace trace(GetParam());
  trace.Begin();
  const ctf::Channel& channel = trace.AddChannel({.name = "c"});
  EventDescription description{.name = "p:ints"};
  for (const uint8_t size : {1, 2, 4, 8}) {
    for (const uint8_t base : {2, 8, 10, 16}) {
      for (const uint8_t flags :
           {0, +WEFT_FIELD_SIGNED, +WEFT_FIELD_NETWORK, WEFT_FIELD_SIGNED | WEFT_FIELD_NETWORK}) {
        description.fields.push_back(
            {.name = "f", .flags = flags, .elem_size = size, .base = base});
      }
    }
  }
  const ctf::EventClass& event = trace.AddEvent(0, channel, description);
  const size_t stream = trace.AddStream(channel, 0);
  for (const uint64_t value :
       {uint64_t{0}, uint64_t{1}, ~uint64_t{0}, uint64_t{0x80}, uint64_t{1} << 63,
        uint64_t{0x8000000080008000}, ~uint64_t{0} >> 1}) {
    RecordBuilder body;
    for (const FieldDescription& field : description.fields) {
      body.FixedBytes({reinterpret_cast<const char*>(&value), field.elem_size});
    }
    ASSERT_EQ(trace.writer(stream).Append(TestTrace::kStart, channel, event, body.body()),
              Appended::kOk);
  }
  trace.Finish(stream, 0, 0);
  ExpectSame(trace, 7);
}

TEST_P(ViewBabeltraceTest, EnumerationsAtTheEndsOfTheirRange) {
  TestTrace trace(GetParam());
  trace.Begin();
  const ctf::Channel& channel = trace.AddChannel({.name = "c"});
  constexpr auto kMin = static_cast<uint64_t>(std::numeric_limits<int64_t>::min());
  constexpr auto kMax = static_cast<uint64_t>(std::numeric_limits<int64_t>::max());
  const EventDescription description{
      .name = "p:enums",
      .fields = {{.name = "s",
                  .kind = FieldKind::kEnum,
                  .flags = WEFT_FIELD_SIGNED,
                  .elem_size = 8,
                  .mappings = {{"low", kMin, kMin + 1},
                               {"high", kMax, kMax},
                               {"minus \"one\" \\", ~uint64_t{0}, ~uint64_t{0}},
                               {"gr\xc3\xbc\n\x7f", 0, 3}}},
                 {.name = "u",
                  .kind = FieldKind::kEnum,
                  .elem_size = 8,
                  .mappings = {{"max", ~uint64_t{0}, ~uint64_t{0}}, {"zero", 0, 0}}}}};
  const ctf::EventClass& event = trace.AddEvent(0, channel, description);
  const size_t stream = trace.AddStream(channel, 0);
  for (const uint64_t value : {uint64_t{0}, uint64_t{9}, kMin, kMax, ~uint64_t{0}}) {
    RecordBuilder body;
    body.Fixed(value).Fixed(value);
    ASSERT_EQ(trace.writer(stream).Append(TestTrace::kStart, channel, event, body.body()),
              Appended::kOk);
  }
  trace.Finish(stream, 0, 0);
  ExpectSame(trace, 5);
}

TEST_P(ViewBabeltraceTest, NamesThatAreKeywordsOrNoIdentifiers) {
  TestTrace trace(GetParam());
  trace.Begin();
  const ctf::Channel& channel = trace.AddChannel({.name = "c"});
  EventDescription description{.name = "weird \"name\" \\ gr\xc3\xbc\xff\033[1m",
                               .uri = "http://x/?a=\"b\"\\"};
  RecordBuilder body;
  for (const char* name : {"align",      "callsite",
                           "const",      "char",
                           "clock",      "double",
                           "enum",       "env",
                           "event",      "float",
                           "integer",    "int",
                           "long",       "short",
                           "signed",     "stream",
                           "string",     "struct",
                           "trace",      "typealias",
                           "typedef",    "unsigned",
                           "variant",    "void",
                           "_Bool",      "_x",
                           "__x",        "9th",
                           "a.b[2].c",   "",
                           "gr\xc3\xbc", "id",
                           "timestamp",  "timestamp_begin",
                           "v",          "x",
                           "x",          "x_2",
                           "y"}) {
    description.fields.push_back({.name = name, .elem_size = 1});
    body.Fixed(uint8_t{5});
  }
  description.fields.push_back(
      {.name = "y", .kind = FieldKind::kSequence, .elem_size = 1, .length_size = 2});
  body.Fixed(uint32_t{2}).Segment("ab");
  const ctf::EventClass& event = trace.AddEvent(0, channel, description);
  const size_t stream = trace.AddStream(channel, 0);
  ASSERT_EQ(trace.writer(stream).Append(TestTrace::kStart, channel, event, body.body()),
            Appended::kOk);
  trace.Finish(stream, 0, 0);
  ExpectSame(trace, 1);
}

TEST_P(ViewBabeltraceTest, RandomTraces) {
  for (uint64_t seed = 1; seed <= 20; seed++) {
    SCOPED_TRACE(seed);
    RandomRecords random(seed);
    random.overlapping_labels = minor == 0;  // 2.1 puts several labels into braces
    TestTrace trace(GetParam());
    trace.Begin();
    size_t events = 0;
    uint64_t time = TestTrace::kStart;
    for (uint32_t c = 0; c < 2; c++) {
      const ctf::Channel& channel = trace.AddChannel(
          {.id = c, .name = "c" + std::to_string(c), .contexts = {{WEFT_CONTEXT_VPID, ""}}});
      std::vector<EventDescription> descriptions;
      std::vector<const ctf::EventClass*> classes;
      for (uint32_t e = 0; e < 5; e++) {
        const uint32_t ids[] = {e, e, 64 + e, 20'000 + e};
        descriptions.push_back(random.Event("p:e" + std::to_string(e)));
        classes.push_back(&trace.AddEvent(ids[random.Below(4)], channel, descriptions.back()));
      }
      for (uint32_t cpu = 0; cpu < 3; cpu++) {
        const size_t stream = trace.AddStream(channel, cpu);
        for (int n = 0; n < 40; n++) {
          RecordBuilder body;
          body.Context(static_cast<uint32_t>(random.Bits()));
          const size_t e = random.Below(5);
          random.AddBody(descriptions[e], body);
          // No two events have the same time: no reader promises an order for those.
          time += 1 + (random.Bits() >> random.Below(40)) % 20'000'000'000;
          ASSERT_EQ(trace.writer(stream).Append(time, channel, *classes[e], body.body()),
                    Appended::kOk);
          events++;
          if (random.Below(10) == 0) trace.Finish(stream, 0, time + random.Below(1000));
        }
        trace.Finish(stream, 0, 0);
        time = TestTrace::kStart + random.Below(1'000'000'000);
      }
    }
    ExpectSame(trace, events);
  }
}

TEST_P(ViewBabeltraceTest, SameDiscardedCounts) {
  TestTrace trace(GetParam());
  trace.Begin();
  const ctf::Channel& channel = trace.AddChannel({.name = "c"});
  const ctf::EventClass& event = trace.AddEvent(0, channel, {.name = "p:e"});
  for (uint32_t cpu = 0; cpu < 2; cpu++) {
    const size_t stream = trace.AddStream(channel, cpu);
    uint64_t time = TestTrace::kStart + cpu;
    uint64_t discarded = 0;
    for (uint64_t n = 0; n < 4; n++) {
      time += 1000;
      (void)trace.writer(stream).Append(time, channel, event, {});
      discarded += n * (cpu + 1);
      trace.Finish(stream, discarded, time + 10);
    }
  }
  const auto theirs = RunCommand(program + " " + trace.path());
  const Captured ours = View({.folder = trace.path()});
  EXPECT_EQ(ours.out, theirs.out);
  EXPECT_EQ(ours.status, kShownAll);
  for (const char* count :
       {"discarded 1 event between", "discarded 2 events between", "discarded 3 events between",
        "discarded 4 events between", "discarded 6 events between"}) {
    EXPECT_NE(theirs.err.find(count), std::string::npos) << count << theirs.err;
    EXPECT_NE(ours.err.find(count), std::string::npos) << count << ours.err;
  }
  EXPECT_EQ(std::count(ours.err.begin(), ours.err.end(), '\n'), 6);
  EXPECT_EQ(std::count(theirs.err.begin(), theirs.err.end(), '\n'), 6);
  EXPECT_EQ(theirs.err.find("may have"), std::string::npos);
}

// Moves each packet of a stream's file, from the third one on, into a file of its own.
std::vector<std::string> SplitIntoChunks(const std::string& file) {
  const std::string bytes = ctf::ReadAll(file);
  std::vector<std::string> chunks;
  uint64_t number = 0;
  for (size_t at = 0; at < bytes.size(); number++) {
    const auto* front = reinterpret_cast<const uint8_t*>(bytes.data() + at);
    const auto info = ctf::ReadPacketInfo({front, ctf::kPacketHeaderBytes});
    const std::string name = number < 2 ? file : file + "." + std::to_string(number) + ".0";
    std::ofstream(name, number == 1 ? std::ios::app : std::ios::trunc)
        << bytes.substr(at, info->packet_bytes);
    if (number != 1) chunks.push_back(name);
    at += info->packet_bytes;
  }
  std::ofstream(file + "." + std::to_string(number) + ".0");  // the newest one, empty
  return chunks;
}

TEST_P(ViewBabeltraceTest, ChunksOfAStreamAreOneStream) {
  TestTrace trace(GetParam());
  trace.Begin();
  const ctf::Channel& channel = trace.AddChannel({.name = "c"});
  const ctf::EventClass& event = trace.AddEvent(0, channel, {.name = "p:e"});
  std::vector<std::string> chunks;
  for (uint32_t cpu = 0; cpu < 2; cpu++) {
    const size_t stream = trace.AddStream(channel, cpu);
    uint64_t time = TestTrace::kStart + cpu;
    for (uint64_t n = 0; n < 12; n++) {
      time += 1000;
      (void)trace.writer(stream).Append(time, channel, event, {});
      trace.Finish(stream, n * (cpu + 1), time + 10);
    }
    chunks = SplitIntoChunks(trace.file(stream));
  }
  ASSERT_EQ(chunks.size(), 12U);
  for (size_t removed = 0; removed < 3; removed++) {
    SCOPED_TRACE(removed);
    const auto theirs = RunCommand(program + " " + trace.path());
    const Captured ours = View({.folder = trace.path()});
    EXPECT_EQ(ours.status, kShownAll);
    EXPECT_EQ(ours.out, theirs.out);
    EXPECT_EQ(std::count(ours.out.begin(), ours.out.end(), '\n'), 24 - static_cast<long>(removed));
    // Messages name the same counts; babeltrace2's also name the time and the trace. From 2.1 on it
    // does not say that events before the first packet may have been discarded.
    const bool only_ours = removed > 0 && minor > 0;
    EXPECT_EQ(std::count(ours.err.begin(), ours.err.end(), '\n'),
              std::count(theirs.err.begin(), theirs.err.end(), '\n') + (only_ours ? 1 : 0))
        << ours.err << theirs.err;
    EXPECT_EQ(ours.err.find("discarded packets"), std::string::npos) << ours.err;
    EXPECT_EQ(ours.err.find("may have discarded") != std::string::npos, removed > 0) << ours.err;
    std::filesystem::remove(chunks[removed]);
  }
}

TEST_P(ViewBabeltraceTest, TracesOfSeveralNodesMerge) {
  TestTrace traces[2] = {TestTrace(GetParam()), TestTrace(GetParam())};
  const ctf::TempFolder folder;
  for (size_t i = 0; i < 2; i++) {
    TestTrace& trace = traces[i];
    trace.info.uuid[0] = static_cast<uint8_t>(i);
    trace.info.clock.uuid[0] = static_cast<uint8_t>(i);
    trace.info.clock.offset_seconds = i == 0 ? 0 : -5;
    trace.info.env = ctf::MakeEnv({.hostname = i == 0 ? "near" : "far"});
    trace.Begin();
    const ctf::Channel& channel = trace.AddChannel({.name = "c"});
    const ctf::EventClass& event = trace.AddEvent(0, channel, {.name = "p:e"});
    const size_t stream = trace.AddStream(channel, 0);
    for (uint64_t n = 0; n < 50; n++) {
      const uint64_t time = TestTrace::kStart + n * 1000 + (n % 3) * i + i * 5'000'000'000 + i;
      ASSERT_EQ(trace.writer(stream).Append(time, channel, event, {}), Appended::kOk);
    }
    trace.Finish(stream, 0, 0);
    std::filesystem::rename(trace.path(), folder.path() + "/" + std::to_string(i));
  }
  const auto theirs = RunCommand(program + " " + folder.path());
  const Captured ours = View({.folder = folder.path()});
  EXPECT_EQ(theirs.err, "");
  EXPECT_EQ(ours.err, "");
  EXPECT_EQ(ours.out, theirs.out);
  EXPECT_EQ(std::count(ours.out.begin(), ours.out.end(), '\n'), 100);
}

TEST_P(ViewBabeltraceTest, TheRangeOfVpidsIsOverwrittenInPlace) {
  TestTrace trace(GetParam());
  trace.info.vpids.emplace();
  trace.Begin();
  const ctf::Channel& channel = trace.AddChannel({.name = "c"});
  const ctf::EventClass& event = trace.AddEvent(0, channel, {.name = "p:e"});
  const size_t stream = trace.AddStream(channel, 0);
  ASSERT_EQ(trace.writer(stream).Append(TestTrace::kStart, channel, event, {}), Appended::kOk);
  trace.Finish(stream, 0, 0);
  const std::string before = ExpectSame(trace, 1);
  std::fstream file(trace.path() + "/metadata", std::ios::in | std::ios::out | std::ios::binary);
  const std::string text = ctf::TraceMetadata(trace.info);
  file.seekp(static_cast<std::streamoff>(ctf::FindVpidRange(GetParam(), text)));
  file << ctf::VpidRangeText(GetParam(), {7, 2147483647});
  file.close();
  EXPECT_EQ(ExpectSame(trace, 1), before);
}

TEST_P(ViewBabeltraceTest, SameColours) {
  TestTrace trace(GetParam());
  trace.Begin();
  const ctf::Channel& channel = trace.AddChannel({.name = "c"});
  const EventDescription description{
      .name = "p:e",
      .fields = {{.name = "e", .kind = FieldKind::kEnum, .mappings = {{"one", 1, 1}}},
                 {.name = "s", .kind = FieldKind::kString},
                 {.name = "a", .kind = FieldKind::kArray, .elem_size = 1, .count = 2}}};
  const ctf::EventClass& event = trace.AddEvent(0, channel, description);
  const size_t stream = trace.AddStream(channel, 0);
  for (uint32_t value = 0; value < 2; value++) {
    RecordBuilder body;
    body.Fixed(value).String("text").Segment("ab");
    ASSERT_EQ(trace.writer(stream).Append(TestTrace::kStart, channel, event, body.body()),
              Appended::kOk);
  }
  trace.Finish(stream, 0, 0);
  auto theirs = RunCommand("env -u TERM BABELTRACE_TERM_COLOR=always " + program +
                           " --color=always " + trace.path());
  // babeltrace2 resets the terminal once more at its end.
  if (theirs.out.ends_with("\033[0m")) theirs.out.resize(theirs.out.size() - 4);
  const Captured ours = View({.folder = trace.path(), .color = ViewColor::kAlways});
  EXPECT_EQ(ours.out, theirs.out);
  EXPECT_NE(ours.out.find("\033["), std::string::npos);
}

// A trace as other tracers write theirs: another clock, other headers, nested fields, bit fields.
TEST(ViewForeignTest, PrintsLikeBabeltrace) {
  const ctf::BabeltraceProgram babeltrace = ctf::FindBabeltrace(Version::k1_8);
  if (!babeltrace.Reads(Version::k1_8) || babeltrace.minor > 0) {
    GTEST_SKIP() << "there is no babeltrace2 2.0 (2.1 puts several labels into braces)";
  }
  const ctf::TempFolder folder;
  std::filesystem::copy_file(WEFT_SOURCE_DIR "/lib/ctf/metadata_fuzz_corpus/foreign.tsdl",
                             folder.path() + "/metadata");
  std::string events;
  const auto put = [&events](auto value) {
    events.append(reinterpret_cast<const char*>(&value), sizeof(value));
  };
  static constexpr size_t kFront = 24 + 42;
  const auto align = [&events] { events.resize((kFront + events.size() + 3) / 4 * 4 - kFront); };
  for (const uint32_t time : {1000U, 5000U, 134'000'000U, 3000U}) {
    put(uint32_t{7 | time << 5});  // compact
    events += std::string("ab\0\0", 4) + "S";
    align();
    events += "\x05";
    align();
    put(int32_t{-1});
    events += "XY123abcdef";
    put(uint16_t{0x1239});  // 4 bits, 12 bits
    events += std::string("\x01\x02\x03?\xc0\0\0str\0", 11);
    events += std::string("\x02one\0two\0", 9);
    events += time == 5000 ? std::string("\x01\x10\x20", 3) : std::string("\x02\x01w\0", 4);
    events += "ABC";  // three: cpu_id
  }
  put(uint8_t{31});  // extended
  put(uint32_t{40});
  put(uint64_t{1'000'000'000});
  events += "efgh";
  std::string packet;
  const auto head = [&packet](auto value) {
    packet.append(reinterpret_cast<const char*>(&value), sizeof(value));
  };
  head(uint32_t{0xc1fc1fc1});
  const Uuid uuid = ParseUuid("2a6422d0-6cee-11e0-8c08-cb07d7b3a564").value();
  head(uuid);
  head(uint32_t{0});
  head(uint64_t{500});
  head(uint64_t{2'000'000'000});
  head(uint64_t{(kFront + events.size()) * 8});
  head(uint64_t{(kFront + events.size() + 10) * 8});
  head(uint64_t{0});
  head(uint16_t{3});
  std::ofstream(folder.path() + "/s_0", std::ios::binary) << packet << events << "0123456789";
  const auto theirs = RunCommand(babeltrace.program + " " + folder.path());
  const Captured ours = View({.folder = folder.path()});
  EXPECT_EQ(theirs.status, 0) << theirs.err;
  EXPECT_EQ(ours.err, "");
  EXPECT_EQ(ours.out, theirs.out);
  EXPECT_EQ(std::count(ours.out.begin(), ours.out.end(), '\n'), 5);
}

INSTANTIATE_TEST_SUITE_P(Ctf, ViewBabeltraceTest, testing::Values(Version::k1_8, Version::k2),
                         [](const auto& info) {
                           return info.param == Version::k2 ? "v2" : "v1_8";
                         });

}  // namespace
}  // namespace weft::cli
