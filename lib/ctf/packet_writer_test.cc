// SPDX-License-Identifier: Apache-2.0
#include "lib/ctf/packet_writer.h"

#include <gtest/gtest.h>

#include <string>

#include "lib/ctf/record_builder.h"

namespace weft::ctf {
namespace {

constexpr uint64_t kStart = 1'000'000'000'000;

std::string Hex(std::span<const uint8_t> bytes) {
  static constexpr char kDigits[] = "0123456789abcdef";
  std::string out;
  for (const uint8_t byte : bytes) {
    out += kDigits[byte >> 4];
    out += kDigits[byte & 15];
  }
  return out;
}

FieldDescription Int(const char* name, uint8_t size = 4) {
  return {.name = name, .elem_size = size};
}

class PacketWriterTest : public testing::Test {
 protected:
  Appended Append(uint64_t time, const EventClass& event, RecordBuilder& body) {
    return writer.Append(time, channel, event, body.body());
  }
  // Returns the event part of the packet.
  std::string Events(uint64_t discarded = 0, uint64_t end = 0) {
    return Hex(writer.Finish(discarded, end).subspan(kPacketHeaderBytes));
  }
  EventClass Class(uint32_t id, std::vector<FieldDescription> fields) {
    return MakeEventClass(id, channel, {.name = "p:e", .fields = std::move(fields)}).value();
  }

  Channel channel = MakeChannel({.id = 0, .name = "c"}).value();
  PacketWriter writer{{.channel_id = 5, .instance_id = 6, .cpu_id = 7}};
};

TEST_F(PacketWriterTest, WritesThePacketHeaderByteForByte) {
  RecordBuilder body;
  body.Fixed(uint32_t{0x11223344});
  ASSERT_EQ(Append(0x0102030405060708, Class(3, {Int("a")}), body), Appended::kOk);
  const auto packet = writer.Finish(9, 0x0102030405060710);
  EXPECT_EQ(Hex(packet),
            "c11ffcc1"
            "00000000000000000000000000000000"
            "05000000"
            "0600000000000000"
            "0807060504030201"
            "1007060504030201"
            "d802000000000000"
            "d802000000000000"
            "0000000000000000"
            "0900000000000000"
            "07000000"
            "0c0807"
            "44332211");
  const auto info = ReadPacketInfo(packet);
  ASSERT_TRUE(info.has_value());
  EXPECT_EQ(info->channel_id, 5U);
  EXPECT_EQ(info->instance_id, 6U);
  EXPECT_EQ(info->cpu_id, 7U);
  EXPECT_EQ(info->begin, 0x0102030405060708U);
  EXPECT_EQ(info->end, 0x0102030405060710U);
  EXPECT_EQ(info->packet_bytes, packet.size());
  EXPECT_EQ(info->sequence, 0U);
  EXPECT_EQ(info->discarded, 9U);
}

TEST_F(PacketWriterTest, TakesTheSmallestEventHeaderThatHoldsIdAndTime) {
  const auto header = [&](uint32_t id, uint64_t delta) {
    RecordBuilder none;
    const EventClass event = Class(id, {});
    EXPECT_EQ(Append(kStart, event, none), Appended::kOk);
    const size_t before = writer.bytes();
    EXPECT_EQ(Append(kStart + delta, event, none), Appended::kOk);
    const size_t bytes = writer.bytes() - before;
    writer = PacketWriter(StreamConfig{});
    return bytes;
  };
  EXPECT_EQ(header(0, 0), 3U);
  EXPECT_EQ(header(63, 0xffff), 3U);
  EXPECT_EQ(header(63, 0x10000), 4U);
  EXPECT_EQ(header(63, 0xffffff), 4U);
  EXPECT_EQ(header(63, 0x1000000), 6U);
  EXPECT_EQ(header(64, 0), 6U);
  EXPECT_EQ(header((1 << 14) - 1, 0xffffffff), 6U);
  EXPECT_EQ(header(0, 0x100000000), 13U);
  EXPECT_EQ(header(1 << 14, 0), 13U);
}

TEST_F(PacketWriterTest, CopiesFixedEventsAsTheyAre) {
  RecordBuilder body;
  body.Fixed(uint8_t{1}).Fixed(uint64_t{2}).Fixed(1.0F);
  const EventClass event =
      Class(0, {Int("a", 1), Int("b", 8), {.name = "f", .kind = FieldKind::kFloat}});
  EXPECT_TRUE(event.plan.verbatim);
  ASSERT_EQ(Append(0, event, body), Appended::kOk);
  EXPECT_EQ(Events(),
            "000000"
            "01"
            "0200000000000000"
            "0000803f");
}

TEST_F(PacketWriterTest, TakesAnEmptyBodyForAnEmptyEvent) {
  EXPECT_EQ(writer.Append(0, channel, Class(0, {}), {}), Appended::kOk);
  EXPECT_EQ(writer.Append(0, channel, Class(0, {Int("a")}), {}), Appended::kMalformed);
  EXPECT_EQ(writer.Append(0, channel, Class(0, {{.name = "s", .kind = FieldKind::kString}}), {}),
            Appended::kMalformed);
  EXPECT_EQ(Events(), "000000");
}

TEST_F(PacketWriterTest, PutsSegmentsWhereTheirFieldsAre) {
  const EventClass event =
      Class(0, {Int("a", 1),
                {.name = "s", .kind = FieldKind::kString},
                {.name = "q", .kind = FieldKind::kSequence, .elem_size = 2, .length_size = 1},
                {.name = "r", .kind = FieldKind::kArray, .elem_size = 1, .count = 2},
                {.name = "n", .flags = WEFT_FIELD_NOWRITE},
                Int("z", 1)});
  RecordBuilder body;
  body.Fixed(uint8_t{1}).String("hey").Fixed(uint32_t{2}).Segment("\x10\x11\x12\x13").Segment("RR");
  body.Fixed(uint8_t{9});
  ASSERT_EQ(Append(0, event, body), Appended::kOk);
  EXPECT_EQ(Events(),
            "000000"
            "01"
            "68657900"
            "02"
            "10111213"
            "5252"
            "09");
}

TEST_F(PacketWriterTest, CutsTextAtNulAndKeepsItsBytes) {
  const EventClass event = Class(0, {{.name = "s", .kind = FieldKind::kString},
                                     {.name = "a",
                                      .kind = FieldKind::kArray,
                                      .flags = WEFT_FIELD_TEXT | WEFT_FIELD_INLINE,
                                      .elem_size = 1,
                                      .count = 4},
                                     {.name = "q",
                                      .kind = FieldKind::kSequence,
                                      .flags = WEFT_FIELD_TEXT,
                                      .elem_size = 1,
                                      .length_size = 8}});
  RecordBuilder body;
  body.String(std::string_view("a\xff\0b", 4)).FixedBytes(std::string_view("c\0\xff\xff", 4));
  body.Fixed(uint32_t{3}).Segment("\x80xy");
  ASSERT_EQ(Append(0, event, body), Appended::kOk);
  EXPECT_EQ(Events(),
            "000000"
            "61ff00"
            "63000000"
            "03000000"
            "807879");
}

TEST_F(PacketWriterTest, WritesContextsBeforeThePayload) {
  channel = MakeChannel({.name = "c",
                         .contexts = {{WEFT_CONTEXT_VPID, ""},
                                      {WEFT_CONTEXT_APP, "a:b"},
                                      {WEFT_CONTEXT_PROCNAME, ""},
                                      {WEFT_CONTEXT_APP, "a:c"}}})
                .value();
  RecordBuilder body;
  body.Context(int32_t{7}).Context(uint8_t{WEFT_DYNAMIC_STRING}).Context(uint32_t{2});
  body.ContextBytes("hi").ContextBytes(std::string_view("prog\0\xff\0\0\0\0\0\0\0\0\0\0", 16));
  body.Context(uint8_t{WEFT_DYNAMIC_U16}).Context(uint16_t{0x0102}).Fixed(uint8_t{3});
  ASSERT_EQ(Append(0, Class(0, {Int("a", 1)}), body), Appended::kOk);
  EXPECT_EQ(Events(),
            "000000"
            "07000000"
            "0b"
            "686900"
            "70726f67000000000000000000000000"
            "06"
            "0201"
            "03");
}

TEST_F(PacketWriterTest, WritesCallStacksOfTheirLength) {
  channel = MakeChannel({.name = "c",
                         .contexts = {{WEFT_CONTEXT_CALLSTACK_KERNEL, ""},
                                      {WEFT_CONTEXT_VTID, ""},
                                      {WEFT_CONTEXT_CALLSTACK_USER, ""},
                                      {WEFT_CONTEXT_PERF_CPU, "cycles"}}})
                .value();
  RecordBuilder body;
  body.Context(uint32_t{2}).Context(uint64_t{1}).Context(uint64_t{0x0203}).Context(int32_t{7});
  body.Context(uint32_t{0}).Context(uint64_t{9}).Fixed(uint8_t{3});
  ASSERT_EQ(Append(0, Class(0, {Int("a", 1)}), body), Appended::kOk);
  EXPECT_EQ(Events(),
            "000000"
            "02000000"
            "0100000000000000"
            "0302000000000000"
            "07000000"
            "00000000"
            "0900000000000000"
            "03");
}

TEST_F(PacketWriterTest, RefusesCallStacksThatAreLongerThanTheirRecord) {
  channel = MakeChannel({.name = "c", .contexts = {{WEFT_CONTEXT_CALLSTACK_USER, ""}}}).value();
  RecordBuilder too_many;
  too_many.Context(uint32_t{WEFT_CONTEXT_MAX_ADDRESSES + 1});
  for (uint32_t i = 0; i <= WEFT_CONTEXT_MAX_ADDRESSES; i++) too_many.Context(uint64_t{i});
  for (const auto& body :
       {RecordBuilder(), RecordBuilder().Context(uint16_t{0}), RecordBuilder().Context(uint32_t{1}),
        RecordBuilder().Context(uint32_t{2}).Context(uint64_t{1}),
        RecordBuilder().Context(uint32_t{0x20000000}).Context(uint64_t{1}), too_many}) {
    RecordBuilder copy = body;
    EXPECT_EQ(Append(0, Class(0, {}), copy), Appended::kMalformed);
  }
}

TEST_F(PacketWriterTest, RefusesBodiesThatContradictTheClassAndWritesNothingOfThem) {
  const EventClass text = Class(0, {Int("a"), {.name = "s", .kind = FieldKind::kString}});
  const EventClass bytes =
      Class(1, {{.name = "q", .kind = FieldKind::kSequence, .elem_size = 8, .length_size = 1}});
  const auto refused = [&](const EventClass& event, RecordBuilder body) {
    const size_t before = writer.bytes();
    EXPECT_EQ(Append(kStart, event, body), Appended::kMalformed);
    EXPECT_EQ(writer.bytes(), before);
    EXPECT_EQ(writer.last_time(), 0U);
  };
  refused(text, RecordBuilder());
  refused(text, RecordBuilder().Fixed(uint32_t{1}));
  refused(text, RecordBuilder().Fixed(uint32_t{1}).Fixed(uint32_t{4}).Segment("abc"));
  refused(text, RecordBuilder().Fixed(uint32_t{1}).Fixed(uint32_t{2}).Segment("abc"));
  refused(text, RecordBuilder().Fixed(uint32_t{1}).Fixed(~uint32_t{0}).Segment("abc"));
  refused(bytes, RecordBuilder().Fixed(~uint32_t{0}));
  refused(bytes, RecordBuilder().Fixed(uint32_t{0x20000001}).Segment("12345678"));
  refused(bytes, RecordBuilder().Fixed(uint32_t{256}).Segment(std::string(2048, 'x')));
}

TEST_F(PacketWriterTest, RefusesUnknownTypesOfDynamicContexts) {
  channel = MakeChannel({.name = "c", .contexts = {{WEFT_CONTEXT_APP, "a:b"}}}).value();
  for (const auto& body :
       {RecordBuilder(), RecordBuilder().Context(uint8_t{12}),
        RecordBuilder().Context(uint8_t{255}),
        RecordBuilder().Context(uint8_t{WEFT_DYNAMIC_U64}).Context(uint32_t{1}),
        RecordBuilder().Context(uint8_t{WEFT_DYNAMIC_STRING}).Context(uint16_t{1}),
        RecordBuilder()
            .Context(uint8_t{WEFT_DYNAMIC_STRING})
            .Context(uint32_t{5})
            .ContextBytes("1234")}) {
    RecordBuilder copy = body;
    EXPECT_EQ(Append(0, Class(0, {}), copy), Appended::kMalformed);
  }
}

TEST_F(PacketWriterTest, TimesNeverGoBack) {
  RecordBuilder none;
  const EventClass event = Class(0, {});
  ASSERT_EQ(Append(kStart, event, none), Appended::kOk);
  ASSERT_EQ(Append(kStart - 5, event, none), Appended::kOk);
  EXPECT_EQ(writer.late(), 1U);
  EXPECT_EQ(writer.last_time(), kStart);
  (void)writer.Finish(0, kStart + 100);
  ASSERT_EQ(Append(kStart + 50, event, none), Appended::kOk);
  EXPECT_EQ(writer.late(), 2U);
  const auto info = ReadPacketInfo(writer.Finish(0, 0));
  EXPECT_EQ(info->begin, kStart + 100);
  EXPECT_EQ(info->end, kStart + 100);
  EXPECT_EQ(info->sequence, 1U);
}

// A body of `words` words, with its time before it, as in records.
struct Timed {
  static constexpr size_t kStride = 128;
  static uint64_t Time(const uint8_t* body) {
    uint64_t time;
    std::memcpy(&time, body - sizeof(time), sizeof(time));
    return time;
  }
  void Add(uint64_t time, size_t words) {
    bytes.resize(++count * kStride);
    uint8_t* at = bytes.data() + (count - 1) * kStride;
    std::memcpy(at, &time, sizeof(time));
    for (size_t i = 0; i < 4 * words; i++) at[8 + i] = static_cast<uint8_t>(time + i);
  }
  [[nodiscard]] const uint8_t* body(size_t i) const { return bytes.data() + i * kStride + 8; }
  std::vector<uint8_t> bytes;
  size_t count = 0;
};

TEST_F(PacketWriterTest, ARunWritesWhatAppendWrites) {
  PacketWriter other{{.channel_id = 5, .instance_id = 6, .cpu_id = 7}};
  uint64_t time = kStart;
  for (const uint32_t id : {3U, 1000U, 100000U}) {
    for (const size_t words : {1U, 3U, 4U, 5U, 7U, 8U, 11U, 16U, 17U}) {
      std::vector<FieldDescription> fields;
      for (size_t i = 0; i < words; i++) fields.push_back(Int(("f" + std::to_string(i)).c_str()));
      const EventClass event = Class(id, std::move(fields));
      const size_t bytes = 4 * words;
      for (int burst = 0; burst < 40; burst++) {
        Timed events;
        for (int i = 0; i <= burst; i++) {
          time += uint64_t{1} << (burst % 36);
          events.Add(time, words);
          ASSERT_EQ(writer.Append(time, channel, event, {events.body(events.count - 1), bytes}),
                    Appended::kOk);
        }
        ASSERT_EQ(
            other.Append(Timed::Time(events.body(0)), channel, event, {events.body(0), bytes}),
            Appended::kOk);
        ASSERT_TRUE(PacketWriter::Run::CanRun(channel, event, bytes));
        PacketWriter::Run run(other, event, bytes);
        const size_t rest = events.count - 1;
        events.Add(time - 1, words);
        ASSERT_EQ(run.Put(events.body(1), Timed::kStride, rest + 1, Timed::Time), rest)
            << "the last one goes back in time";
      }
      EXPECT_EQ(other.events(), writer.events());
      EXPECT_EQ(Hex(other.Finish(0, 0)), Hex(writer.Finish(0, 0)));
    }
  }
}

TEST_F(PacketWriterTest, ARunEndsWhereThereMayBeNoRoom) {
  PacketWriter small({}, kMinPacketCapacity);
  const EventClass event = Class(0, {{.name = "a",
                                      .kind = FieldKind::kArray,
                                      .flags = WEFT_FIELD_INLINE,
                                      .elem_size = 1,
                                      .count = 50}});
  EXPECT_FALSE(PacketWriter::Run::CanRun(channel, event, 49));
  ASSERT_TRUE(PacketWriter::Run::CanRun(channel, event, 50));
  const std::vector<uint8_t> body(50, 1);
  ASSERT_EQ(small.Append(kStart, channel, event, body), Appended::kOk);
  {
    PacketWriter::Run run(small, event, body.size());
    while (run.Put(body.data(), 0, 3, [](const uint8_t*) { return kStart; }) > 0) {
    }
  }
  EXPECT_LE(small.bytes(), kMinPacketCapacity - kPaddingMaxBytes);
  EXPECT_GT(small.bytes(), kMinPacketCapacity - kPaddingMaxBytes - 50 - kEventHeaderMaxBytes - 4);
}

TEST_F(PacketWriterTest, PadsWithZeros) {
  RecordBuilder body;
  body.Fixed(uint32_t{1});
  ASSERT_EQ(Append(kStart, Class(0, {Int("a")}), body), Appended::kOk);
  const size_t content = writer.bytes();
  const auto packet = writer.Finish(0, 0, content + 5);
  ASSERT_EQ(packet.size(), content + 5);
  EXPECT_EQ(Hex(packet.last(5)), "0000000000");
  const auto info = ReadPacketInfo(packet);
  ASSERT_TRUE(info);
  EXPECT_EQ(info->content_bytes, content);
  EXPECT_EQ(info->packet_bytes, content + 5);
}

TEST_F(PacketWriterTest, SaysFullBeforeAnyByteTooMany) {
  std::vector<uint8_t> memory(kMinPacketCapacity + 64, 0xee);
  PacketWriter small({}, std::span(memory).first(kMinPacketCapacity));
  const EventClass event = Class(0, {{.name = "s", .kind = FieldKind::kString}});
  RecordBuilder body;
  body.String(std::string(1000, 'x'));
  uint64_t events = 0;
  while (small.Append(kStart, channel, event, body.body()) == Appended::kOk) events++;
  EXPECT_EQ(small.Append(kStart, channel, event, body.body()), Appended::kFull);
  EXPECT_EQ(small.events(), events);
  EXPECT_GT(events, (kMinPacketCapacity - kPaddingMaxBytes) / 1010);
  const auto packet = small.Finish(0, 0);
  EXPECT_EQ(packet.size(), kPacketHeaderBytes + events * 1004);
  for (size_t i = kMinPacketCapacity; i < memory.size(); i++) ASSERT_EQ(memory[i], 0xee);
  EXPECT_EQ(small.Append(kStart, channel, event, body.body()), Appended::kOk);
}

TEST_F(PacketWriterTest, ABodyLargerThanAnyPacketIsMalformed) {
  RecordBuilder body;
  body.String(std::string(2 * kDefaultPacketCapacity, 'x'));
  EXPECT_EQ(Append(0, Class(0, {{.name = "s", .kind = FieldKind::kString}}), body),
            Appended::kMalformed);
}

TEST_F(PacketWriterTest, GoesOnAfterARestart) {
  PacketWriter again({.first_sequence = 12, .last_time = kStart});
  const auto info = ReadPacketInfo(again.Finish(3, kStart - 1));
  EXPECT_EQ(info->sequence, 12U);
  EXPECT_EQ(info->begin, kStart);
}

TEST_F(PacketWriterTest, ALostPacketLeavesNoGapInTheNumbers) {
  (void)writer.Finish(0, kStart);
  (void)writer.Finish(0, kStart + 1);
  writer.TakeBack();
  EXPECT_EQ(ReadPacketInfo(writer.Finish(0, kStart + 2))->sequence, 1U);
}

TEST(PacketInfoTest, RefusesOtherBytes) {
  PacketWriter writer{StreamConfig{}};
  const auto packet = writer.Finish(0, 5);
  std::vector<uint8_t> bytes(packet.begin(), packet.end());
  EXPECT_FALSE(ReadPacketInfo(std::span(bytes).first(83)).has_value());
  bytes[0] ^= 1;
  EXPECT_FALSE(ReadPacketInfo(bytes).has_value());
  bytes[0] ^= 1;
  bytes[48] = 1;  // content of fewer bytes than the header
  EXPECT_FALSE(ReadPacketInfo(bytes).has_value());
}

TEST(EventClassTest, RefusesFieldsThatTheModelDoesNotHave) {
  const Channel channel = MakeChannel({.name = "c"}).value();
  const auto refused = [&](FieldDescription field) {
    EXPECT_FALSE(MakeEventClass(0, channel, {.name = "e", .fields = {std::move(field)}}));
  };
  refused({.name = "a", .elem_size = 3});
  refused({.name = "a", .kind = FieldKind::kFloat, .elem_size = 2});
  refused({.name = "a", .kind = static_cast<FieldKind>(77)});
  refused({.name = "a", .kind = FieldKind::kSequence, .length_size = 3});
  refused({.name = "a", .kind = FieldKind::kArray, .flags = WEFT_FIELD_TEXT, .elem_size = 2});
  refused({.name = "a", .kind = FieldKind::kArray, .elem_size = 8, .count = 0xffffffff});
  EXPECT_FALSE(MakeChannel({.name = "c", .contexts = {{999, ""}}}));
}

}  // namespace
}  // namespace weft::ctf
