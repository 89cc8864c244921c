// SPDX-License-Identifier: Apache-2.0
// Headers that EventHeader knows mean what Decoder reads from them.
#include "lib/ctf/event_header.h"

#include <gtest/gtest.h>

#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "lib/ctf/decoder.h"
#include "lib/ctf/trace_class.h"

namespace weft::ctf {
namespace {

TraceClass Parsed(const std::string& header, const std::string& byte_order = "le") {
  const std::string text = R"(/* CTF 1.8 */
trace { major = 1; minor = 8; byte_order = )" +
                           byte_order + R"(; };
clock { name = c; freq = 1000000000; };
stream { event.header := )" +
                           header + R"(; };
event { name = e; id = 0; fields := struct { integer { size = 8; } x; }; };
)";
  auto trace = ParseMetadata(text);
  EXPECT_TRUE(trace) << trace.error().message;
  return std::move(*trace);
}

std::string Bits(int bits, bool is_clock = false) {
  return "integer { size = " + std::to_string(bits) + "; align = 1; signed = false;" +
         (is_clock ? " map = clock.c.value; }" : " }");
}

class ClassVisitor final : public Visitor {
 public:
  void Integer(const Type& type, uint64_t value) override {
    if (type.role == Role::kEventClass) event_class = value;
  }
  uint64_t event_class = 0;
};

// Reads random headers in both ways. Returns how many of them EventHeader knew.
size_t Compare(const TraceClass& trace) {
  const DataStreamClass& stream = trace.streams.begin()->second;
  const EventHeader header(stream.event_header);
  std::mt19937_64 random(1);
  size_t known = 0;
  for (int i = 0; i < 1000; i++) {
    std::vector<uint8_t> bytes(32);
    for (uint8_t& byte : bytes) byte = static_cast<uint8_t>(random());
    uint64_t word = 0;
    std::memcpy(&word, bytes.data(), sizeof(word));
    const EventHeader::Form* form = header.Find(word);
    if (form == nullptr) continue;
    known++;
    Decoder decoder;
    decoder.SetSavedValues(trace.saved_values);
    decoder.SetPacket(bytes);
    const uint64_t clock = random();
    decoder.set_clock(clock);
    ClassVisitor visitor;
    EXPECT_TRUE(decoder.Decode(*stream.event_header, visitor));
    EXPECT_EQ(form->bits, decoder.position());
    EXPECT_EQ(form->event_class.In(word), visitor.event_class);
    Decoder moved;
    moved.set_clock(clock);
    if (form->time.bits != 0) moved.MoveClock(form->time.In(word), form->time.bits);
    EXPECT_EQ(moved.clock(), decoder.clock());
  }
  return known;
}

TEST(EventHeaderTest, KnowsAClassAndATime) {
  EXPECT_EQ(Compare(Parsed("struct { " + Bits(16) + " id; " + Bits(48, true) + " t; } align(8)")),
            1000U);
  EXPECT_EQ(Compare(Parsed("struct { " + Bits(3) + " id; } align(8)")), 1000U);
}

// The form that the last tag selects is too long for a word.
TEST(EventHeaderTest, KnowsTheShortFormsOfAVariant) {
  const std::string header = "struct { enum : " + Bits(5) +
                             " { compact = 0 ... 30, extended = 31 } id; variant <id> { struct { " +
                             Bits(27, true) + " t; } compact; struct { " + Bits(32) + " id; " +
                             Bits(64, true) + " t; } extended; } v; } align(8)";
  const size_t known = Compare(Parsed(header));
  EXPECT_GT(known, 900U);
  EXPECT_LT(known, 1000U);
}

TEST(EventHeaderTest, AlignsTheMembersOfAnOption) {
  const std::string header =
      "struct { enum : " + Bits(2) + " { a = 0, b = 1 ... 2 } tag; variant <tag> { struct { " +
      Bits(6) + " id; } a; struct { integer { size = 16; align = 16; signed = false; } id; " +
      Bits(8, true) + " t; } b; } v; } align(32)";
  const size_t known = Compare(Parsed(header));
  EXPECT_GT(known, 600U);  // the tag 3 selects nothing
  EXPECT_LT(known, 900U);
}

TEST(EventHeaderTest, LeavesOtherHeadersToTheDecoder) {
  const std::string both = Bits(16) + " id; " + Bits(32, true) + " t;";
  EXPECT_EQ(Compare(Parsed("struct { " + both + " } align(8)", "be")), 0U);
  EXPECT_EQ(Compare(Parsed("struct { " + both + " }")), 0U);  // begins at any bit
  EXPECT_EQ(Compare(Parsed("struct { " + both + Bits(32) + " more; } align(8)")), 0U);
  EXPECT_EQ(Compare(Parsed("struct { " + Bits(32, true) + " t; } align(8)")), 0U);  // no class
  EXPECT_EQ(EventHeader(std::nullopt).Find(0), nullptr);
}

}  // namespace
}  // namespace weft::ctf
