// SPDX-License-Identifier: Apache-2.0
// Both readers of descriptions: the C++ parser and the walker in C that shares no code with it.
#include "lib/event/description.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>

#include "lib/event/description_walk.h"

namespace weft {
namespace {

// The worked example of docs/formats/event.md, byte by byte.
const std::vector<uint8_t> kOrder = {
    // struct weft_event_desc
    139,
    0,
    0,
    0,  // size
    1,
    0,  // version
    3,
    0,  // fields
    6,
    0,
    0,
    0,  // log level
    11,
    0,  // bytes of the name
    0,
    0,  // no URI
    0,
    0,
    0,
    0,
    0,
    0,
    0,
    0,  // reserved
    's',
    'h',
    'o',
    'p',
    ':',
    'o',
    'r',
    'd',
    'e',
    'r',
    0,
    // "id": uint32
    19,
    0,
    0,
    0,
    1,
    0,
    4,
    10,
    0,
    0,
    0,
    0,
    3,
    0,
    0,
    0,
    'i',
    'd',
    0,
    // "state": enum of int8, one mapping
    53,
    0,
    0,
    0,
    6,
    1,
    1,
    10,
    1,
    0,
    0,
    0,
    6,
    0,
    0,
    0,
    's',
    't',
    'a',
    't',
    'e',
    0,
    31,
    0,
    0,
    0,
    0,
    0,
    0,
    0,  // size, reserved
    0xff,
    0xff,
    0xff,
    0xff,
    0xff,
    0xff,
    0xff,
    0xff,  // -1
    2,
    0,
    0,
    0,
    0,
    0,
    0,
    0,  // to 2
    'g',
    'o',
    ' ',
    'o',
    'n',
    '!',
    0,
    // "user": string that is not recorded
    21 + 11,
    0,
    0,
    0,
    3,
    8,
    1,
    0,
    0,
    0,
    0,
    0,
    16,
    0,
    0,
    0,
    'u',
    's',
    'e',
    'r',
    '_',
    'n',
    'a',
    'm',
    'e',
    '_',
    'l',
    'o',
    'n',
    'g',
    '1',
    0,
};

EventDescription Order() {
  EventDescription event{.name = "shop:order", .loglevel = 6};
  event.fields = {
      {.name = "id", .elem_size = 4},
      {.name = "state",
       .kind = FieldKind::kEnum,
       .flags = WEFT_FIELD_SIGNED,
       .elem_size = 1,
       .mappings = {{"go on!", ~uint64_t{0}, 2}}},
      {.name = "user_name_long1",
       .kind = FieldKind::kString,
       .flags = WEFT_FIELD_NOWRITE,
       .elem_size = 1,
       .base = 0},
  };
  event.ComputeLayout();
  return event;
}

int Walk(const std::vector<uint8_t>& bytes, weft_description_layout* layout) {
  // A buffer of exactly this size, so that ASan sees reads beyond it.
  const auto copy = std::make_unique<uint8_t[]>(bytes.size());
  std::copy(bytes.begin(), bytes.end(), copy.get());
  return weft_description_check(copy.get(), static_cast<uint32_t>(bytes.size()), layout);
}

TEST(Description, ParsesTheDocumentedBytes) {
  const Result<EventDescription> event = EventDescription::Parse(kOrder);
  ASSERT_TRUE(event.has_value()) << event.error().message;
  EXPECT_EQ(*event, Order());
  EXPECT_EQ(event->fixed_size, 5u);
  EXPECT_EQ(event->nowrite_size, 4u);
  EXPECT_EQ(event->fields[2].fixed_offset, 5u);
  EXPECT_EQ(event->fields[2].segment, 0u);
  EXPECT_EQ(event->segment_count, 0u);
  EXPECT_EQ(event->nowrite_segments, 1u);
}

TEST(Description, EncodesTheDocumentedBytes) { EXPECT_EQ(*Order().Encode(), kOrder); }

TEST(Description, IgnoresBytesBehindIt) {
  std::vector<uint8_t> longer = kOrder;
  longer.insert(longer.end(), 100, 0xee);
  EXPECT_EQ(*EventDescription::Parse(longer), Order());
}

TEST(Description, EveryTruncationIsRefusedByBothReaders) {
  for (size_t size = 0; size < kOrder.size(); ++size) {
    std::vector<uint8_t> bytes(kOrder.begin(), kOrder.begin() + static_cast<ptrdiff_t>(size));
    weft_description_layout layout;
    EXPECT_FALSE(EventDescription::Parse(bytes).has_value()) << size;
    EXPECT_EQ(Walk(bytes, &layout), -EINVAL) << size;
    // The size also claims to be whole.
    if (size < 24) continue;
    bytes[0] = static_cast<uint8_t>(size);
    EXPECT_FALSE(EventDescription::Parse(bytes).has_value()) << size;
    EXPECT_EQ(Walk(bytes, &layout), -EINVAL) << size;
  }
}

TEST(Description, BothReadersAgreeOnEveryChangedByte) {
  for (size_t at = 0; at < kOrder.size(); ++at) {
    for (int value = 0; value < 256; ++value) {
      std::vector<uint8_t> bytes = kOrder;
      bytes[at] = static_cast<uint8_t>(value);
      weft_description_layout layout{};
      const int walked = Walk(bytes, &layout);
      const auto parsed = EventDescription::Parse(bytes, FieldNames::kPaths);
      // Only the C++ code looks at names beyond their NUL.
      if (!parsed && parsed.error().code == ErrorCode::kInvalid) continue;
      ASSERT_EQ(walked == 0, parsed.has_value()) << "byte " << at << " = " << value;
      if (!parsed) continue;
      EXPECT_EQ(layout.fixed_size, parsed->fixed_size);
      EXPECT_EQ(layout.nowrite_size, parsed->nowrite_size);
      EXPECT_EQ(layout.segment_count, parsed->segment_count);
      EXPECT_EQ(layout.nowrite_segments, parsed->nowrite_segments);
    }
  }
}

EventDescription Everything() {
  EventDescription event{
      .name = "test:everything", .uri = "https://example.org/event", .loglevel = 0};
  event.fields = {
      {.name = "hidden", .flags = WEFT_FIELD_NOWRITE, .elem_size = 2},
      {.name = "u64", .flags = WEFT_FIELD_NETWORK, .elem_size = 8, .base = 16},
      {.name = "text", .kind = FieldKind::kString, .elem_size = 1},
      {.name = "f", .kind = FieldKind::kFloat, .elem_size = 4},
      {.name = "near", .kind = FieldKind::kArray, .flags = WEFT_FIELD_INLINE, .count = 3},
      {.name = "far", .kind = FieldKind::kArray, .elem_size = 2, .count = 1000},
      {.name = "hidden_text",
       .kind = FieldKind::kString,
       .flags = WEFT_FIELD_NOWRITE,
       .elem_size = 1},
      {.name = "seq",
       .kind = FieldKind::kSequence,
       .flags = WEFT_FIELD_FLOAT_ELEMENTS,
       .elem_size = 8,
       .length_size = 2,
       .length_flags = WEFT_FIELD_SIGNED},
      {.name = "last", .elem_size = 1},
  };
  event.ComputeLayout();
  return event;
}

TEST(Description, LayoutIsRecordedFieldsThenNowriteFields) {
  const EventDescription event = Everything();
  struct Place {
    const char* name;
    uint32_t offset;
    uint32_t bytes;
    std::optional<uint32_t> segment;
  };
  const Place places[] = {{"u64", 0, 8, {}},    {"text", 8, 4, 0},     {"f", 12, 4, {}},
                          {"near", 16, 12, {}}, {"far", 28, 0, 1},     {"seq", 28, 4, 2},
                          {"last", 32, 1, {}},  {"hidden", 33, 2, {}}, {"hidden_text", 35, 4, 3}};
  for (const Place& place : places) {
    const FieldDescription* field = event.FindField(place.name);
    ASSERT_NE(field, nullptr) << place.name;
    EXPECT_EQ(field->fixed_offset, place.offset) << place.name;
    EXPECT_EQ(field->fixed_bytes, place.bytes) << place.name;
    EXPECT_EQ(field->segment, place.segment) << place.name;
  }
  EXPECT_EQ(event.FindField("none"), nullptr);
}

TEST(Description, TheWalkerFindsTheSameFields) {
  const EventDescription event = Everything();
  const std::vector<uint8_t> bytes = *event.Encode();
  EXPECT_EQ(*EventDescription::Parse(bytes), event);
  weft_description_layout layout;
  ASSERT_EQ(weft_description_check(bytes.data(), static_cast<uint32_t>(bytes.size()), &layout), 0);
  EXPECT_STREQ(layout.name, "test:everything");
  EXPECT_EQ(layout.loglevel, 0);
  ASSERT_EQ(layout.field_count, event.fields.size());
  for (uint32_t i = 0; i < layout.field_count; ++i) {
    const FieldDescription& expected = event.fields[i];
    weft_description_field by_name;
    weft_description_field by_index;
    ASSERT_EQ(weft_description_find(bytes.data(), &layout, expected.name.data(),
                                    static_cast<uint32_t>(expected.name.size()), &by_name),
              0);
    ASSERT_EQ(weft_description_field_at(bytes.data(), &layout, i, &by_index), 0);
    EXPECT_EQ(by_name.name, by_index.name);
    EXPECT_EQ(by_name.fixed_offset, expected.fixed_offset);
    EXPECT_EQ(by_name.fixed_bytes, expected.fixed_bytes);
    EXPECT_EQ(by_name.segment, expected.segment.value_or(WEFT_NO_SEGMENT));
    EXPECT_EQ(by_name.kind, static_cast<uint8_t>(expected.kind));
  }
  weft_description_field field;
  EXPECT_EQ(weft_description_find(bytes.data(), &layout, "u6", 2, &field), -ENOENT);
  EXPECT_EQ(weft_description_field_at(bytes.data(), &layout, layout.field_count, &field), -ENOENT);
}

// Is the description refused, and with which code?
ErrorCode Refusal(const EventDescription& event, FieldNames names = FieldNames::kIdentifiers) {
  const auto parsed = EventDescription::Parse(*event.Encode(), names);
  EXPECT_FALSE(parsed.has_value());
  return parsed ? ErrorCode::kClosed : parsed.error().code;
}

EventDescription With(FieldDescription field) {
  EventDescription event{.name = "p:e"};
  event.fields = {std::move(field)};
  return event;
}

TEST(Description, NamesAreIdentifiersAndUnique) {
  EXPECT_EQ(Refusal(With({.name = "a-b"})), ErrorCode::kInvalid);
  EXPECT_EQ(Refusal(With({.name = "a.b"})), ErrorCode::kInvalid);
  EXPECT_TRUE(EventDescription::Parse(*With({.name = "a.b"}).Encode(), FieldNames::kPaths));
  EventDescription twice = With({.name = "a"});
  twice.fields.push_back({.name = "a"});
  EXPECT_EQ(Refusal(twice), ErrorCode::kInvalid);
  EXPECT_EQ(Refusal(EventDescription{.name = "p:\x1b[0m"}), ErrorCode::kInvalid);
  EXPECT_EQ(Refusal(EventDescription{.name = "p:\xff"}), ErrorCode::kInvalid);
}

TEST(Description, LabelsAndUriAreAnyText) {
  EventDescription event = With({.name = "a", .kind = FieldKind::kEnum});
  event.fields[0].mappings = {{"tab\tline\n\x1b[0m", 0, 0}, {"\xff\x80", 1, 1}, {"", 2, 2}};
  event.uri = "a\tb";
  const auto parsed = EventDescription::Parse(*event.Encode());
  ASSERT_TRUE(parsed) << parsed.error().message;
  EXPECT_EQ(parsed->fields[0].mappings, event.fields[0].mappings);
  EXPECT_EQ(parsed->uri, event.uri);
}

// uint8_t key[4] of media type "a/b", at the end of an event's description.
const std::vector<uint8_t> kBlob = {0x18, 0, 0, 0, 4,   0x10, 1,   16, 4,   0,   0,   0,
                                    4,    0, 0, 0, 'k', 'e',  'y', 0,  'a', '/', 'b', 0};

TEST(Description, ABlobHasItsMediaTypeBehindItsName) {
  const EventDescription event = With({.name = "key",
                                       .kind = FieldKind::kArray,
                                       .flags = WEFT_FIELD_INLINE,
                                       .elem_size = 1,
                                       .base = 16,
                                       .count = 4,
                                       .blob = true,
                                       .media_type = "a/b"});
  const std::vector<uint8_t> bytes = *event.Encode();
  ASSERT_GE(bytes.size(), kBlob.size());
  EXPECT_EQ(std::vector<uint8_t>(bytes.end() - static_cast<ptrdiff_t>(kBlob.size()), bytes.end()),
            kBlob);
  const auto parsed = EventDescription::Parse(bytes);
  ASSERT_TRUE(parsed) << parsed.error().message;
  EXPECT_TRUE(parsed->fields[0].blob);
  EXPECT_EQ(parsed->fields[0].media_type, "a/b");
  // A text that is no media type comes from a later version and is ignored: the field is bytes.
  std::vector<uint8_t> later = bytes;
  later.back() = 'x';
  const auto passed = EventDescription::Parse(later);
  ASSERT_TRUE(passed) << passed.error().message;
  EXPECT_FALSE(passed->fields[0].blob);
  EXPECT_EQ(passed->fields[0].count, 4U);
}

TEST(Description, KindsSizesAndFlagsGoTogether) {
  const FieldDescription broken[] = {
      {.name = "a", .kind = static_cast<FieldKind>(0)},
      {.name = "a", .kind = static_cast<FieldKind>(7)},
      {.name = "a", .elem_size = 3},
      {.name = "a", .base = 3},
      {.name = "a", .count = 1},
      {.name = "a", .flags = 0x80},
      {.name = "a", .kind = FieldKind::kFloat, .elem_size = 2},
      {.name = "a", .kind = FieldKind::kString, .elem_size = 2},
      {.name = "a", .kind = FieldKind::kArray, .flags = WEFT_FIELD_TEXT, .elem_size = 2},
      {.name = "a", .kind = FieldKind::kArray, .flags = WEFT_FIELD_INLINE, .count = 17},
      {.name = "a", .kind = FieldKind::kArray, .elem_size = 8, .count = 0x20000000},
      {.name = "a", .kind = FieldKind::kSequence},
  };
  for (const FieldDescription& field : broken) {
    const EventDescription event = With(field);
    EXPECT_EQ(Refusal(event), ErrorCode::kCorrupt);
    weft_description_layout layout;
    EXPECT_EQ(Walk(*event.Encode(), &layout), -EINVAL);
  }
}

TEST(Description, LimitsAreKept) {
  EventDescription event{.name = "p:e"};
  for (uint32_t i = 0; i < WEFT_EVENT_MAX_FIELDS; ++i)
    event.fields.push_back({.name = "f" + std::to_string(i)});
  EXPECT_TRUE(EventDescription::Parse(*event.Encode()).has_value());
  event.fields.push_back({.name = "one_more"});
  EXPECT_EQ(event.Encode().error().code, ErrorCode::kLimit);
  EXPECT_EQ(EventDescription{.name = std::string(WEFT_EVENT_NAME_MAX, 'x')}.Encode().error().code,
            ErrorCode::kLimit);
}

}  // namespace
}  // namespace weft
