// SPDX-License-Identifier: Apache-2.0
// Descriptions are handed out once, in order, only when committed; contradictions are refused.
#include "lib/ring/description_reader.h"

#include <gtest/gtest.h>

#include "lib/ring/reader_limits.h"
#include "lib/ring/testing/test_writer.h"

namespace weft::ring {
namespace {

using testing::MakeDescription;
using testing::TestWriter;

struct Got {
  std::vector<std::pair<uint16_t, std::vector<uint8_t>>> entries;
  DescriptionReader::Sink Sink() {
    return [this](uint16_t event, Bytes bytes) -> Status {
      entries.emplace_back(event, std::vector<uint8_t>(bytes.begin(), bytes.end()));
      return {};
    };
  }
};

TEST(DescriptionReader, HandsOutEachCommittedDescriptionOnce) {
  TestWriter writer;
  auto ring = RingSet::Open(writer.Fd());
  ASSERT_TRUE(ring);
  DescriptionReader reader(*ring);
  Got got;
  EXPECT_FALSE(*reader.Poll(got.Sink()));
  writer.Describe(3, MakeDescription("p:one", {"a", "b"}));
  writer.Describe(4, MakeDescription("p:two"), false);
  EXPECT_FALSE(*reader.Poll(got.Sink()));
  ASSERT_EQ(got.entries.size(), 1U);
  EXPECT_EQ(got.entries[0].first, 3);
  EXPECT_EQ(got.entries[0].second, MakeDescription("p:one", {"a", "b"}));
  writer.Describe(4, MakeDescription("p:two"));
  EXPECT_FALSE(*reader.Poll(got.Sink()));
  EXPECT_EQ(got.entries.size(), 2U);
}

TEST(DescriptionReader, ManyTakeSeveralPolls) {
  TestWriter writer({.descriptions_size = 4 << 20});
  auto ring = RingSet::Open(writer.Fd());
  ASSERT_TRUE(ring);
  const std::string long_name(400, 'x');
  for (uint16_t i = 0; i < 8000; i++) writer.Describe(i, MakeDescription("p:" + long_name));
  DescriptionReader reader(*ring);
  Got got;
  int polls = 1;
  while (*reader.Poll(got.Sink())) polls++;
  EXPECT_EQ(got.entries.size(), 8000U);
  EXPECT_GT(polls, 1);
}

TEST(DescriptionReader, RefusesContradictions) {
  const auto refused = [](const auto& spoil) {
    TestWriter writer;
    writer.Describe(1, MakeDescription("p:one"));
    writer.Describe(2, MakeDescription("p:two"));
    auto* entry = reinterpret_cast<weft_description_entry*>(writer.memory().data() +
                                                            writer.header()->descriptions_offset);
    spoil(writer, *entry);
    auto ring = RingSet::Open(writer.Fd());
    DescriptionReader reader(*ring);
    Got got;
    return !reader.Poll(got.Sink()).has_value();
  };
  EXPECT_FALSE(refused([](auto&, auto&) {}));
  EXPECT_TRUE(refused([](auto&, auto& e) { e.size = 0; }));
  EXPECT_TRUE(refused([](auto&, auto& e) { e.size = 31; }));
  EXPECT_TRUE(refused([](auto&, auto& e) { e.size = ~0U; }));
  EXPECT_TRUE(refused([](auto&, auto& e) { e.size += 8; }));
  EXPECT_TRUE(refused([](auto&, auto& e) { e.reserved = 1; }));
  EXPECT_TRUE(refused([](auto& w, auto&) { w.header()->descriptions_used = 24; }));
  EXPECT_TRUE(refused([](auto& w, auto&) { w.header()->descriptions_used = ~uint64_t{7}; }));
  EXPECT_TRUE(refused([](auto& w, auto&) { w.header()->descriptions_used += 4; }));
}

TEST(DescriptionReader, UsedNeverGoesBack) {
  TestWriter writer;
  writer.Describe(1, MakeDescription("p:one"));
  auto ring = RingSet::Open(writer.Fd());
  DescriptionReader reader(*ring);
  Got got;
  ASSERT_TRUE(reader.Poll(got.Sink()));
  writer.header()->descriptions_used = 0;
  EXPECT_FALSE(reader.Poll(got.Sink()));
}

}  // namespace
}  // namespace weft::ring
