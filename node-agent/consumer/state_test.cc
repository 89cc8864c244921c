// SPDX-License-Identifier: Apache-2.0
// The journal's record has the bytes that an independent encoder makes, and comes back from them.
#include "node-agent/consumer/state.h"

#include <gtest/gtest.h>

#include <fstream>
#include <iterator>

namespace weft::consumer {
namespace {

// The format, written out as little-endian words.
class Golden {
 public:
  Golden& U8(uint8_t value) { return Put(value, 1); }
  Golden& U32(uint32_t value) { return Put(value, 4); }
  Golden& U64(uint64_t value) { return Put(value, 8); }
  Golden& U64s(uint64_t first, uint64_t count) {
    for (uint64_t i = 0; i < count; i++) U64(first + i);
    return *this;
  }
  Golden& Text(const std::string& text) {
    U64(text.size());
    bytes_.insert(bytes_.end(), text.begin(), text.end());
    return *this;
  }
  [[nodiscard]] const std::vector<uint8_t>& bytes() const { return bytes_; }

 private:
  Golden& Put(uint64_t value, int size) {
    for (int i = 0; i < size; i++) bytes_.push_back(static_cast<uint8_t>(value >> (8 * i)));
    return *this;
  }
  std::vector<uint8_t> bytes_;
};

OutputRecord Example() {
  SlotRecord slot = {.slot = 20, .last_cpu = 21};
  slot.state = {.position = 22, .accounted = 23, .in_subbuf = 24, .overwritten = 25, .skipped = 26};
  slot.discarded = {30, 31, 32, 33, 34, 35};
  slot.overwritten = 36;
  RingRecord ring = {.key = {.device = 40, .inode = 41}, .instance = 42};
  ring.phase = RingPhase::kCorrupt;
  ring.corrupt_recorded = 43;
  ring.slots = {slot, {}};
  ChannelRecord channel = {.id = 50, .stream_class = 51, .classes = 52};
  channel.totals = {.delivered = 60,
                    .late = 61,
                    .lost = {62, 63, 64, 65, 59},
                    .rings = 66,
                    .corrupt_rings = 67,
                    .tail_unknown = 68,
                    .recorded = 69,
                    .overwritten = 70,
                    .discarded = {71, 72, 73, 74, 75, 76}};
  channel.streams = {{.cpu = 80,
                      .bytes = 81,
                      .packets = 82,
                      .events = 83,
                      .next_sequence = 84,
                      .discarded = 85,
                      .last_time = 86,
                      .last_discarded = 87}};
  channel.rings = {ring};
  OutputRecord output;
  output.name = "ust";
  output.metadata_bytes = 90;
  output.vpids = {.min = 91, .max = 92};
  output.channels = {channel};
  return output;
}

std::vector<uint8_t> ExampleBytes() {
  Golden golden;
  golden.Text("ust").U64(90).U32(91).U32(92);
  golden.U64(1).U64(50).U32(51).U32(52);                  // the channel
  golden.U64s(60, 6).U64(59).U64s(66, 11);                // its totals
  golden.U64(1).U32(80).U64s(81, 7);                      // its stream
  golden.U64(1).U64s(40, 3).U8(2).U64(43);                // its ring
  golden.U64(2).U32(20).U32(21).U64s(22, 5).U64s(30, 7);  // the ring's slots
  golden.U32(0).U32(0).U64(sizeof(weft_subbuf_header));
  for (int i = 0; i < 11; i++) golden.U64(0);
  return golden.bytes();
}

TEST(State, HasGoldenBytes) {
  std::vector<uint8_t> bytes;
  Encode(Example(), bytes);
  EXPECT_EQ(bytes, ExampleBytes());
}

TEST(State, RecordsComeBackFromTheirBytes) {
  std::vector<uint8_t> bytes;
  Encode(Example(), bytes);
  Encode(OutputRecord{}, bytes);
  const auto outputs = DecodeOutputs(bytes);
  ASSERT_TRUE(outputs) << outputs.error().message;
  ASSERT_EQ(outputs->size(), 2U);
  std::vector<uint8_t> again;
  for (const OutputRecord& output : *outputs) Encode(output, again);
  EXPECT_EQ(again, bytes);
}

TEST(State, ACutRecordIsRefused) {
  const std::vector<uint8_t> bytes = ExampleBytes();
  for (size_t size = 1; size < bytes.size(); size++)
    EXPECT_FALSE(DecodeOutputs(Bytes(bytes).first(size))) << size;
}

// Compares the table of reasons (lib/abi/ring.h) with the page that tells what helps against each.
TEST(DiscardReasons, EachHasANameAndARowInTheDocuments) {
  std::ifstream in(WEFT_SOURCE_DIR "/docs/operations.md");
  const std::string page{std::istreambuf_iterator<char>(in), {}};
  for (uint32_t reason = 0; reason < WEFT_DISCARD_REASONS; reason++) {
    ASSERT_NE(weft_discard_name(reason), nullptr) << reason;
    const std::string row = std::string("\n| discarded, ") + weft_discard_name(reason);
    EXPECT_NE(page.find(row), std::string::npos) << row;
  }
  EXPECT_EQ(weft_discard_name(WEFT_DISCARD_REASONS), nullptr);
}

}  // namespace
}  // namespace weft::consumer
