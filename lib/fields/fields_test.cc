// SPDX-License-Identifier: Apache-2.0
// A struct with a list of fields comes back from JSON and from bytes as it was; what is foreign is
// refused.
#include "lib/fields/fields.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include "lib/fields/binary.h"
#include "lib/fields/json.h"

namespace weft::fields {
namespace {

enum class Colour : uint8_t { kRed, kBlue };
constexpr Colour LastOf(Colour) { return Colour::kBlue; }

struct Inner {
  int32_t number = 0;
  std::string text;

  bool operator==(const Inner&) const = default;
  static constexpr auto Fields() {
    return std::tuple(Field("number", &Inner::number), Field("words", &Inner::text));
  }
};

struct Outer {
  uint16_t small = 0;
  bool on = false;
  Colour colour = Colour::kRed;
  std::array<uint8_t, 3> bytes{};
  std::vector<Inner> list;
  uint64_t later = 7;

  static constexpr std::string_view kName = "outer";
  bool operator==(const Outer&) const = default;
  static constexpr auto Fields() {
    return std::tuple(Field("small", &Outer::small), Field("on", &Outer::on),
                      Field("colour", &Outer::colour), Field("bytes", &Outer::bytes),
                      Field("list", &Outer::list), OptionalField("later", &Outer::later));
  }
};

struct Empty {
  static constexpr std::string_view kName = "empty";
  bool operator==(const Empty&) const = default;
  static constexpr auto Fields() { return std::tuple(); }
};

struct Counts {
  CountsByName by_reason;
  UniqueFd fd;

  static constexpr std::string_view kName = "counts";
  static constexpr auto Fields() {
    return std::tuple(Field("by_reason", &Counts::by_reason), OptionalField("fd", &Counts::fd));
  }
};

using Message = std::variant<Empty, Outer, Counts>;

const Outer kExample = {.small = 65535,
                        .on = true,
                        .colour = Colour::kBlue,
                        .bytes = {1, 2, 3},
                        .list = {{-1, "a"}, {2, ""}},
                        .later = ~uint64_t{0}};
constexpr const char* kText =
    R"({"bytes":[1,2,3],"colour":1,"later":18446744073709551615,)"
    R"("list":[{"number":-1,"words":"a"},{"number":2,"words":""}],"on":true,"small":65535})";

TEST(Fields, MembersAreCounted) {
  static_assert(fields_internal::CountMembers<Empty>() == 0);
  static_assert(fields_internal::CountMembers<Inner>() == 2);
  static_assert(fields_internal::CountMembers<Outer>() == 6);
  static_assert(fields_internal::CountMembers<Counts>() == 2);
}

TEST(Fields, TwoStructsAreVisitedTogether) {
  Inner sum = {.number = 1, .text = "a"};
  ForEachField(sum, Inner{.number = 2, .text = "b"},
               [](const auto&, auto& to, const auto& from) { to += from; });
  EXPECT_EQ(sum, (Inner{.number = 3, .text = "ab"}));
}

TEST(Json, GoldenTextAndBack) {
  EXPECT_EQ(JsonWriter().Value(kExample).dump(), kText);
  Outer read;
  EXPECT_EQ(JsonReader().Fields(Json::parse(kText), read), "");
  EXPECT_EQ(read, kExample);
}

TEST(Json, NamesTheFirstFieldThatIsWrong) {
  const auto wrong = [](const char* name, const Json& value) {
    Json json = Json::parse(kText);
    json[name] = value;
    Outer read;
    return JsonReader().Fields(json, read);
  };
  EXPECT_EQ(wrong("unknown", 1), "");
  EXPECT_EQ(wrong("small", 65536), "small");
  EXPECT_EQ(wrong("small", -1), "small");
  EXPECT_EQ(wrong("small", 1.5), "small");
  EXPECT_EQ(wrong("small", nullptr), "small");
  EXPECT_EQ(wrong("on", 1), "on");
  EXPECT_EQ(wrong("colour", 2), "colour");
  EXPECT_EQ(wrong("bytes", {1, 2}), "bytes");
  EXPECT_EQ(wrong("bytes", {1, 2, 256}), "bytes");
  EXPECT_EQ(wrong("list", {1}), "list");
  EXPECT_EQ(wrong("later", nullptr), "");
  EXPECT_EQ(wrong("later", "x"), "later");
}

TEST(Json, OnlyOptionalFieldsMayBeAbsent) {
  Json json = Json::parse(kText);
  json.erase("later");
  Outer read;
  EXPECT_EQ(JsonReader().Fields(json, read), "");
  EXPECT_EQ(read.later, 7U);
  json.erase("on");
  EXPECT_EQ(JsonReader().Fields(json, read), "on");
}

TEST(Json, LimitsHold) {
  const Json json = Json::parse(R"({"by_reason":{"a":1,"long":2}})");
  const auto read = [&](JsonLimits limits) {
    Counts counts;
    return JsonReader(limits).Fields(json, counts);
  };
  EXPECT_EQ(read({}), "");
  EXPECT_EQ(read({.map = 2, .key = 4}), "");
  EXPECT_EQ(read({.map = 1}), "by_reason");
  EXPECT_EQ(read({.key = 3}), "by_reason");
  Outer outer;
  EXPECT_EQ(JsonReader({.list = 1}).Fields(Json::parse(kText), outer), "list");
}

TEST(Json, AMessageIsKnownByItsType) {
  Message message = kExample;
  Json json = MessageToJson(message, JsonWriter());
  EXPECT_EQ(json["type"], "outer");
  auto read = MessageFromJson<Message>(json, JsonReader());
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(std::get<Outer>(*read), kExample);
  json["type"] = "empty";
  ASSERT_TRUE(MessageFromJson<Message>(json, JsonReader()));
  json["type"] = "other";
  EXPECT_FALSE(MessageFromJson<Message>(json, JsonReader()));
  EXPECT_EQ(MessageFromJson<Message>({{"type", "outer"}}, JsonReader()).error().message,
            "outer: wrong or missing: small");
}

TEST(Json, DescriptorsTravelBesideTheText) {
  Message message = Counts{.by_reason = {}, .fd = UniqueFd(::dup(0))};
  std::vector<UniqueFd> fds;
  const Json json = MessageToJson(message, JsonWriter(&fds));
  EXPECT_EQ(json["fd"], 0);
  ASSERT_EQ(fds.size(), 1U);
  const int number = fds[0].get();
  auto read = MessageFromJson<Message>(json, JsonReader({}, &fds));
  ASSERT_TRUE(read);
  EXPECT_EQ(std::get<Counts>(*read).fd.get(), number);
  // It was taken.
  EXPECT_FALSE(MessageFromJson<Message>(json, JsonReader({}, &fds)));
}

TEST(Binary, GoldenBytesAndBack) {
  std::vector<uint8_t> bytes;
  BinaryWriter(bytes).Value(kExample);
  const std::vector<uint8_t> golden = {
      0xff, 0xff, 1,    1,    1,    2,    3,                           // small, on, colour, bytes
      2,    0,    0,    0,    0,    0,    0,    0,                     // the list's length
      0xff, 0xff, 0xff, 0xff, 1,    0,    0,    0,   0, 0, 0, 0, 'a',  // its first entry
      2,    0,    0,    0,    0,    0,    0,    0,   0, 0, 0, 0,       // its second
      0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff};                 // later
  EXPECT_EQ(bytes, golden);
  Outer read;
  BinaryReader reader(bytes);
  reader.Value(read);
  EXPECT_TRUE(reader.ok());
  EXPECT_FALSE(reader.more());
  EXPECT_EQ(read, kExample);
}

TEST(Binary, ACutRecordIsSeen) {
  std::vector<uint8_t> bytes;
  BinaryWriter(bytes).Value(kExample);
  for (size_t size = 0; size < bytes.size(); ++size) {
    Outer read;
    BinaryReader reader(Bytes(bytes).first(size));
    reader.Value(read);
    EXPECT_FALSE(reader.ok()) << size;
  }
}

}  // namespace
}  // namespace weft::fields
