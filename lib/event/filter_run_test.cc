// SPDX-License-Identifier: Apache-2.0
// What filters answer, from text to result.
#include <gtest/gtest.h>

#include <limits>

#include "lib/event/filter_compiler.h"
#include "lib/event/filter_test_event.h"

namespace weft {
namespace {

using testing::LinkedFilter;
using testing::TestContexts;
using testing::TestEvent;

class FilterRun : public ::testing::Test {
 protected:
  void SetUp() override {
    event_.Number<int8_t>("i8", -1)
        .Number<uint8_t>("u8", 200)
        .Number<int16_t>("i16", -300)
        .Number<uint16_t>("u16", 60000)
        .Number<int32_t>("i32", -5)
        .Number<uint32_t>("u32", 4000000000u)
        .Number<int64_t>("i64", std::numeric_limits<int64_t>::min())
        .Number<uint64_t>("u64", 0xffffffffffffffffu)
        .Number<int16_t>("be16", -2, WEFT_FIELD_NETWORK)
        .Number<uint32_t>("be32", 0x01020304, WEFT_FIELD_NETWORK)
        .Number<int64_t>("be64", -77, WEFT_FIELD_NETWORK)
        .Number<float>("f", 0.5f)
        .Number<double>("d", -2.25)
        .Number<double>("bed", 8.5, WEFT_FIELD_NETWORK)
        .Number<int32_t>("hidden", 42, WEFT_FIELD_NOWRITE)
        .Text("s", "hello world")
        .Text("empty", "")
        .Text("cut", std::string_view("abc\0def", 7))
        .Text("secret", "key", WEFT_FIELD_NOWRITE)
        .Array<int32_t>("near", {10, -20, 30}, WEFT_FIELD_INLINE)
        .Array<uint16_t>("far", {7, 8, 9})
        .Array<double>("floats", {1.5, 2.5})
        .Sequence<int64_t>("seq", {100, -200})
        .Sequence<uint32_t>("beseq", {5, 6}, WEFT_FIELD_NETWORK)
        .Sequence<uint8_t>("none", {})
        .Array<char>("name", {'b', 'o', 'b', 0, 'x'}, WEFT_FIELD_INLINE | WEFT_FIELD_TEXT)
        .Array<char>("full", {'m', 'a', 'x'}, WEFT_FIELD_TEXT)
        .Sequence<char>("seqtext", {'q', 'r'}, WEFT_FIELD_TEXT)
        .Number<int32_t>("order.price", 700)
        .Text("order.items[1].name", "pear")
        .Array<uint16_t>("order.items[1].counts", {3, 4})
        .Sequence<int8_t>("matrix[1]", {5, -6});
    event_.Build();
    contexts_.entries = {
        {"vpid", WEFT_FILTER_SYMBOL_CONTEXT, WEFT_FILTER_INT, int64_t{123}},
        {"procname", WEFT_FILTER_SYMBOL_CONTEXT, WEFT_FILTER_STRING, std::string("shop")},
        {"lost", WEFT_FILTER_SYMBOL_CONTEXT, WEFT_FILTER_INT, std::monostate{}},
        {"liar", WEFT_FILTER_SYMBOL_CONTEXT, WEFT_FILTER_INT, std::string("no integer")},
        {"p:number", WEFT_FILTER_SYMBOL_APP, WEFT_FILTER_ANY, int64_t{-9}},
        {"p:float", WEFT_FILTER_SYMBOL_APP, WEFT_FILTER_ANY, 0.25},
        {"p:text", WEFT_FILTER_SYMBOL_APP, WEFT_FILTER_ANY, std::string("alice")},
        {"p:none", WEFT_FILTER_SYMBOL_APP, WEFT_FILTER_ANY, std::monostate{}},
    };
  }

  int LinkError(std::string_view expression) {
    const auto program = CompileFilter(expression);
    EXPECT_TRUE(program.has_value()) << program.error().ToError(expression).message;
    return LinkedFilter(*program, event_.encoded(), &contexts_).error;
  }

  bool Matches(std::string_view expression) {
    const auto program = CompileFilter(expression);
    EXPECT_TRUE(program.has_value()) << program.error().ToError(expression).message;
    if (!program) return false;
    const LinkedFilter filter(*program, event_.encoded(), &contexts_);
    EXPECT_EQ(filter.error, 0) << expression;
    return filter.Run(event_, &contexts_);
  }

  TestEvent event_;
  TestContexts contexts_;
};

TEST_F(FilterRun, ReadsIntegersOfEveryKind) {
  EXPECT_TRUE(Matches("i8 == -1 && u8 == 200 && i16 == -300 && u16 == 60000"));
  EXPECT_TRUE(Matches("i32 == -5 && u32 == 4000000000 && be16 == -2 && be32 == 0x01020304"));
  EXPECT_TRUE(Matches("be64 == -77 && hidden == 42"));
}

TEST_F(FilterRun, ComparesAllIntegersAsSigned64Bits) {
  EXPECT_TRUE(Matches("u64 == -1"));
  EXPECT_TRUE(Matches("u64 < 0"));
  EXPECT_TRUE(Matches("u64 == 0xffffffffffffffff"));
  EXPECT_TRUE(Matches("i64 == 0x8000000000000000"));
  EXPECT_TRUE(Matches("i64 <= -9223372036854775808"));
  EXPECT_FALSE(Matches("i64 < -9223372036854775808"));
  EXPECT_TRUE(Matches("i64 < 0x7fffffffffffffff"));
  EXPECT_FALSE(Matches("i64 > 0x7fffffffffffffff"));
}

TEST_F(FilterRun, BitOperatorsBindStrongerThanComparisons) {
  EXPECT_TRUE(Matches("2 & 2 == 2"));
  EXPECT_TRUE(Matches("u8 & 8 == 8"));
  EXPECT_TRUE(Matches("1 << 2 | 1 == 5"));
  EXPECT_TRUE(Matches("u8 >> 3 == 25"));
  EXPECT_TRUE(Matches("i8 >> 60 == 15")) << "right shifts are of unsigned values";
  EXPECT_TRUE(Matches("~u8 == -201"));
  EXPECT_TRUE(Matches("(u8 ^ 0xff) == 55"));
}

TEST_F(FilterRun, ShiftsBeyondTheWordMakeTheFilterFalse) {
  EXPECT_FALSE(Matches("(u8 << 64) == 0"));
  EXPECT_FALSE(Matches("(u8 << 64) != 0"));
  EXPECT_FALSE(Matches("!(u8 >> i8)"));
  EXPECT_TRUE(Matches("(u8 << 63) == 0"));
  EXPECT_TRUE(Matches("1 == 1 || (u8 << 64)")) << "the right side is not looked at";
}

TEST_F(FilterRun, ComparesFloats) {
  EXPECT_TRUE(Matches("f == 0.5 && d < -2 && d >= -2.25 && bed == 8.5"));
  EXPECT_TRUE(Matches("f < 1 && i32 < f && i32 == -5.0"));
  EXPECT_TRUE(Matches("-d == 2.25 && !d == 0 && floats[1] > floats[0]"));
  EXPECT_TRUE(Matches("f && f == 0x1p-1"));
  EXPECT_FALSE(Matches("d != -2.25"));
}

TEST_F(FilterRun, ComparesStrings) {
  EXPECT_TRUE(Matches("s == \"hello world\""));
  EXPECT_FALSE(Matches("s == \"hello\""));
  EXPECT_TRUE(Matches("s != \"hello\""));
  EXPECT_TRUE(Matches("empty == \"\" && empty != \"x\" && empty == \"*\""));
  EXPECT_TRUE(Matches("cut == \"abc\" && cut == \"ab*\" && cut != \"*d*\""));
  EXPECT_TRUE(Matches("name == \"bob\" && full == 'max' && seqtext == \"qr\""));
  EXPECT_TRUE(Matches("s == s && s != name && \"bob\" == name && secret == 'key'"));
}

TEST_F(FilterRun, MatchesPatterns) {
  EXPECT_TRUE(Matches("s == \"hello*\""));
  EXPECT_TRUE(Matches("s == \"*world\""));
  EXPECT_TRUE(Matches("s == \"h*o w*d\""));
  EXPECT_FALSE(Matches("s == \"h*x*d\""));
  EXPECT_TRUE(Matches("s != \"hello\\*\""));
  EXPECT_TRUE(Matches("\"*lo*\" == s"));
  EXPECT_TRUE(Matches("\"abc\" == \"a*\""));
}

TEST_F(FilterRun, ReadsElements) {
  EXPECT_TRUE(Matches("near[0] == 10 && near[1] == -20 && near[2] == 30"));
  EXPECT_TRUE(Matches("far[2] == 9 && seq[1] == -200 && beseq[0] == 5 && seq[0]"));
  EXPECT_FALSE(Matches("seq[2] == 0 || 1")) << "an index beyond a sequence: false";
  EXPECT_TRUE(Matches("1 || seq[2] == 0"));
  EXPECT_FALSE(Matches("!none[0]"));
}

TEST_F(FilterRun, ReadsMembersOfStructures) {
  EXPECT_TRUE(Matches("order.price == 700 && order.price > 600"));
  EXPECT_FALSE(Matches("order.price < 700"));
  EXPECT_TRUE(Matches("order.items[1].name == \"pe*\" && order.items[1].counts[1] == 4"));
  EXPECT_TRUE(Matches("order . items [ 0x1 ] . counts [ 0 ] == 3 && matrix[1][1] == -6"));
  EXPECT_FALSE(Matches("matrix[1][2] == 0 || 1")) << "an index beyond a sequence: false";
  EXPECT_EQ(LinkError("order == 700"), -ENOENT);
  EXPECT_EQ(LinkError("price == 700"), -ENOENT);
  EXPECT_EQ(LinkError("order.price.cents == 700"), -ENOENT);
  EXPECT_EQ(LinkError("order.items[0].name == \"pear\""), -ENOENT);
  EXPECT_EQ(LinkError("order.items.name == \"pear\""), -ENOENT);
  EXPECT_EQ(LinkError("matrix[1] == 5"), -ENOENT) << "that would be an element of `matrix`";
  EXPECT_EQ(LinkError("order.items[1].counts[2] == 3"), -EPROTOTYPE);
}

TEST_F(FilterRun, UsesComparisonsAsNumbers) {
  EXPECT_TRUE(Matches("(u8 == 200) == 1"));
  EXPECT_TRUE(Matches("(u8 == 1) == (u16 == 1)"));
  EXPECT_TRUE(Matches("((u8 && u16) | 2) == 3"));
  EXPECT_TRUE(Matches("(5 && u8) == 1"));
  EXPECT_TRUE(Matches("!(u8 == 1 || u16 == 1) && !!u8"));
  EXPECT_TRUE(Matches("~(u8 || 0) == -2"));
  EXPECT_TRUE(Matches("-(u8 < 10 || s == \"*\") == -1"));
}

TEST_F(FilterRun, ReadsContexts) {
  EXPECT_TRUE(Matches("$ctx.vpid == 123 && $ctx.procname == \"sh*\""));
  EXPECT_FALSE(Matches("$ctx.vpid > 123"));
  EXPECT_FALSE(Matches("!$ctx.lost")) << "no value: false";
  EXPECT_FALSE(Matches("$ctx.liar == 0 || 1")) << "a value of another type: false";
  EXPECT_TRUE(Matches("$app.p:number == -9 && -$app.p:number == 9 && +$app.p:number < 0"));
  EXPECT_TRUE(Matches("$app.p:float == 0.25 && $app.p:float < 1 && $app.p:text == \"al*\""));
  EXPECT_TRUE(Matches("$app.p:text == $app.p:text && $app.p:number & 1"));
  EXPECT_FALSE(Matches("$app.p:text == 1"));
  EXPECT_FALSE(Matches("$app.p:text != 1"));
  EXPECT_FALSE(Matches("!(+$app.p:text)"));
  EXPECT_FALSE(Matches("!$app.p:none"));
  EXPECT_FALSE(Matches("~$app.p:float || 1"));
  EXPECT_TRUE(Matches("$app.p:float && !($app.p:float == 1)"));
}

TEST_F(FilterRun, NamesThatAreNotThereDoNotMatch) {
  EXPECT_EQ(LinkError("nothing == 1"), -ENOENT);
  EXPECT_EQ(LinkError("1 || nothing"), -ENOENT);
  EXPECT_EQ(LinkError("a.b.c == 1"), -ENOENT);
  EXPECT_EQ(LinkError("$ctx.unknown"), -ENOENT);
  EXPECT_EQ(LinkError("$app.p:unknown"), -ENOENT);
  EXPECT_EQ(LinkError("$app.vp:id"), -ENOENT);
}

TEST_F(FilterRun, TypesThatDoNotFitDoNotMatch) {
  EXPECT_EQ(LinkError("s == 1"), -EPROTOTYPE);
  EXPECT_EQ(LinkError("i32 == \"1\""), -EPROTOTYPE);
  EXPECT_EQ(LinkError("s"), -EPROTOTYPE);
  EXPECT_EQ(LinkError("s < name"), -EPROTOTYPE);
  EXPECT_EQ(LinkError("s && 1"), -EPROTOTYPE);
  EXPECT_EQ(LinkError("!s"), -EPROTOTYPE);
  EXPECT_EQ(LinkError("~f"), -EPROTOTYPE);
  EXPECT_EQ(LinkError("f & 1"), -EPROTOTYPE);
  EXPECT_EQ(LinkError("near == 1"), -EPROTOTYPE);
  EXPECT_EQ(LinkError("near[3] == 1"), -EPROTOTYPE);
  EXPECT_EQ(LinkError("i32[0] == 1"), -EPROTOTYPE);
  EXPECT_EQ(LinkError("s[0] == 1"), -EPROTOTYPE);
}

TEST_F(FilterRun, MissingMemoryIsUndefined) {
  for (weft_segment& segment : event_.segments()) segment.data = nullptr;
  EXPECT_FALSE(Matches("s == \"hello world\""));
  EXPECT_FALSE(Matches("s != \"hello world\""));
  EXPECT_FALSE(Matches("far[0] == 7 || 1"));
  EXPECT_TRUE(Matches("empty == \"\""));
}

TEST_F(FilterRun, LengthsBeyondTheSegmentAreCut) {
  for (weft_segment& segment : event_.segments()) segment.size = 0;
  EXPECT_TRUE(Matches("s == \"\""));
  EXPECT_FALSE(Matches("seq[0] == 100 || 1"));
}

TEST_F(FilterRun, LongConditionsAreLinkedAndRun) {
  std::string all = "u8 == 200";
  std::string any = "u8 == 1";
  for (int i = 0; i < 100; ++i) {
    all += " && u8 != " + std::to_string(i);
    any += " || u8 == " + std::to_string(i + 101);
  }
  EXPECT_TRUE(Matches(all));
  EXPECT_TRUE(Matches(any));
  EXPECT_FALSE(Matches(all + " && u16 == 1"));
}

}  // namespace
}  // namespace weft
