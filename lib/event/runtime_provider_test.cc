// SPDX-License-Identifier: Apache-2.0
#include "lib/event/runtime_provider.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cerrno>
#include <string>
#include <vector>

#include "lib/event/description.h"

namespace weft {
namespace {

std::vector<uint8_t> Describe(const weft_runtime_event& source) {
  std::vector<uint8_t> bytes(4096);
  const int size =
      weft_runtime_describe(&source, bytes.data(), static_cast<uint32_t>(bytes.size()));
  EXPECT_GT(size, 0);
  bytes.resize(size > 0 ? static_cast<size_t>(size) : 0);
  return bytes;
}

constexpr std::array<weft_runtime_label, 1> kStates = {{{"paid", 1, 2}}};
constexpr std::array<weft_runtime_field, 3> kOrderFields = {{
    {.name = "id", .kind = WEFT_FIELD_KIND_INTEGER, .elem_size = 4, .base = 10},
    {.name = "state",
     .kind = WEFT_FIELD_KIND_ENUM,
     .flags = WEFT_FIELD_SIGNED,
     .elem_size = 1,
     .base = 10,
     .count = 1,
     .labels = kStates.data()},
    {.name = "note", .kind = WEFT_FIELD_KIND_STRING},
}};
constexpr weft_runtime_event kOrder = {
    .name = "shop:order", .loglevel = 6, .field_count = 3, .fields = kOrderFields.data()};

TEST(RuntimeProvider, WritesTheBytesOfTheFormat) {
  const std::string expected(
      "\x7e\0\0\0\1\0\3\0\6\0\0\0\13\0\0\0\0\0\0\0\0\0\0\0shop:order\0"
      "\x13\0\0\0\1\0\4\x0a\0\0\0\0\3\0\0\0id\0"
      "\x33\0\0\0\6\1\1\x0a\1\0\0\0\6\0\0\0state\0"
      "\x1d\0\0\0\0\0\0\0\1\0\0\0\0\0\0\0\2\0\0\0\0\0\0\0paid\0"
      "\x15\0\0\0\3\0\0\0\0\0\0\0\5\0\0\0note\0",
      126);
  const std::vector<uint8_t> bytes = Describe(kOrder);
  EXPECT_EQ(std::string(bytes.begin(), bytes.end()), expected);
}

TEST(RuntimeProvider, WritesTheBytesOfTheCxxEncoder) {
  const std::array<weft_runtime_field, 5> fields = {{
      {.name = "a", .kind = WEFT_FIELD_KIND_FLOAT, .elem_size = 8},
      {.name = "b",
       .kind = WEFT_FIELD_KIND_ARRAY,
       .flags = WEFT_FIELD_SIGNED | WEFT_FIELD_NETWORK,
       .elem_size = 4,
       .base = 16,
       .count = 1000},
      {.name = "c",
       .kind = WEFT_FIELD_KIND_SEQUENCE,
       .flags = WEFT_FIELD_NOWRITE,
       .elem_size = 2,
       .base = 8,
       .length_size = 4,
       .length_flags = WEFT_FIELD_SIGNED},
      {.name = "d",
       .kind = WEFT_FIELD_KIND_SEQUENCE,
       .elem_size = 1,
       .base = 10,
       .length_size = 8,
       .media_type = "image/png"},
      {.name = "e",
       .kind = WEFT_FIELD_KIND_ENUM,
       .elem_size = 2,
       .base = 10,
       .count = 1,
       .labels = kStates.data()},
  }};
  const weft_runtime_event source = {.name = "x:all",
                                     .uri = "https://example.org/x",
                                     .loglevel = 3,
                                     .field_count = 5,
                                     .fields = fields.data()};
  const std::vector<uint8_t> bytes = Describe(source);
  const auto parsed = EventDescription::Parse(bytes);
  ASSERT_TRUE(parsed.has_value()) << parsed.error().message;
  EXPECT_EQ(parsed->name, "x:all");
  EXPECT_EQ(parsed->uri, "https://example.org/x");
  EXPECT_EQ(parsed->loglevel, 3);
  ASSERT_EQ(parsed->fields.size(), 5U);
  EXPECT_EQ(parsed->fields[1].count, 1000U);
  EXPECT_TRUE(parsed->fields[2].is_nowrite());
  EXPECT_EQ(parsed->fields[3].media_type, "image/png");
  EXPECT_EQ(parsed->fields[4].mappings, (std::vector<EnumMapping>{{"paid", 1, 2}}));
  const auto encoded = parsed->Encode();
  ASSERT_TRUE(encoded.has_value());
  EXPECT_EQ(bytes, *encoded);
}

TEST(RuntimeProvider, PadsTheSizeToTheMultipleThatIsAskedFor) {
  weft_runtime_event padded = kOrder;
  padded.size_multiple = 8;
  std::vector<uint8_t> expected = Describe(kOrder);
  expected.resize(128);
  expected[0] = 128;
  EXPECT_EQ(Describe(padded), expected);
  EXPECT_TRUE(EventDescription::Parse(expected).has_value());
}

TEST(RuntimeProvider, FillsTheEventsSizes) {
  const std::array<weft_runtime_field, 3> fields = {{
      {.name = "a", .kind = WEFT_FIELD_KIND_INTEGER, .elem_size = 8, .base = 10},
      {.name = "b", .kind = WEFT_FIELD_KIND_STRING},
      {.name = "c",
       .kind = WEFT_FIELD_KIND_SEQUENCE,
       .flags = WEFT_FIELD_NOWRITE,
       .elem_size = 1,
       .length_size = 4},
  }};
  const weft_runtime_event source = {
      .name = "x:y", .loglevel = 13, .field_count = 3, .fields = fields.data()};
  std::array<uint8_t, 256> buffer{};
  uint32_t word = 0;
  weft_event event{};
  event.enabled = &word;
  EXPECT_EQ(weft_runtime_provide(&source, buffer.data(), buffer.size(), &event),
            static_cast<int>(Describe(source).size()));
  EXPECT_EQ(event.size, sizeof(event));
  EXPECT_EQ(static_cast<const void*>(event.desc), buffer.data());
  EXPECT_EQ(event.fixed_size, 12U);
  EXPECT_EQ(event.nowrite_size, 4U);
  EXPECT_EQ(event.segment_count, 1);
  EXPECT_EQ(event.nowrite_segments, 1);
  EXPECT_EQ(event.enabled, &word);
}

TEST(RuntimeProvider, NeedsExactlyTheRoomThatItReports) {
  const int size = weft_runtime_describe(&kOrder, nullptr, 0);
  ASSERT_EQ(size, 126);
  for (uint32_t room = 0; room < 126; ++room) {
    const std::vector<uint8_t> filled(room, 0xaa);
    std::vector<uint8_t> bytes = filled;
    bytes.reserve(1);  // no null pointer where room is 0
    EXPECT_EQ(weft_runtime_describe(&kOrder, bytes.data(), room), -ENOSPC);
    EXPECT_EQ(bytes, filled);
  }
  std::vector<uint8_t> bytes(126);
  EXPECT_EQ(weft_runtime_describe(&kOrder, bytes.data(), 126), 126);
}

TEST(RuntimeProvider, RefusesInvalidEvents) {
  std::vector<uint8_t> buffer(1U << 20);
  const auto refused = [&](const weft_runtime_event& source) {
    weft_event event{};
    const int result =
        weft_runtime_provide(&source, buffer.data(), static_cast<uint32_t>(buffer.size()), &event);
    EXPECT_EQ(event.desc != nullptr, result > 0);
    return result == -EINVAL;
  };
  const auto with = [](const weft_runtime_field& field) {
    return weft_runtime_event{.name = "x:y", .field_count = 1, .fields = &field};
  };
  const std::string long_name(WEFT_EVENT_NAME_MAX, 'n');
  const std::string long_text(1U << 18, 't');
  EXPECT_TRUE(refused({.name = nullptr}));
  EXPECT_TRUE(refused({.name = ""}));
  EXPECT_TRUE(refused({.name = long_name.c_str()}));
  EXPECT_TRUE(refused({.name = "x:y", .uri = long_text.c_str()}));
  EXPECT_TRUE(refused({.name = "x:y", .field_count = WEFT_EVENT_MAX_FIELDS + 1}));

  weft_runtime_field field = {
      .name = "f", .kind = WEFT_FIELD_KIND_INTEGER, .elem_size = 4, .base = 10};
  EXPECT_FALSE(refused(with(field)));
  field.elem_size = 3;
  EXPECT_TRUE(refused(with(field)));
  field.elem_size = 4;
  field.base = 7;
  EXPECT_TRUE(refused(with(field)));
  field.base = 10;
  field.kind = 0;
  EXPECT_TRUE(refused(with(field)));
  field.kind = WEFT_FIELD_KIND_INTEGER;
  field.name = "";
  EXPECT_TRUE(refused(with(field)));
  field.name = long_name.c_str();
  EXPECT_TRUE(refused(with(field)));
  field.name = "f";
  field.media_type = long_text.c_str();
  EXPECT_TRUE(refused(with(field)));
}

}  // namespace
}  // namespace weft
