// SPDX-License-Identifier: Apache-2.0
// LTTng's verdicts: the expressions of lttng-tools' tests of filters
// (tests/regression/tools/filtering: test_valid_filter, test_invalid_filter, test_unsupported_op),
// what LTTng says to each, and how many events of this file's own it lets pass.
// docs/formats/filter.md has the differences.
#include <gtest/gtest.h>

#include "lib/event/filter_compiler.h"
#include "lib/event/filter_test_event.h"

namespace weft {
namespace {

using testing::LinkedFilter;
using testing::TestContexts;
using testing::TestEvent;

constexpr int kNumbers = 100;  // events of the first table: `intfield` is 0 to 99

struct Verdict {
  const char* expression;
  int count;
};

constexpr Verdict kOfNumbers[] = {
    {"intfield", 99},
    {"intfield > 1", 98},
    {"intfield >= 1", 99},
    {"intfield < 2", 2},
    {"intfield <= 2", 3},
    {"intfield == 1", 1},
    {"intfield != 99", 99},
    {"!intfield", 1},
    {"-intfield", 99},
    {"--intfield", 99},
    {"+intfield", 99},
    {"++intfield", 99},
    {"intfield > 1 && longfield > 42", 57},
    {"intfield >= 42 && longfield <= 42", 1},
    {"intfield < 1 || longfield > 98", 2},
    {"(stringfield == \"test\" || intfield != 10) && intfield > 33", 66},
    {"intfield < 42.4242424242", 43},
    {"\"test\" == \"test\"", 100},
    {"stringfield == \"test\"", 100},
    {"stringfield == \"t*\"", 100},
    {"stringfield == \"*\"", 100},
    {"intfield > 0 && intfield > 1 && intfield > 2 && intfield > 3 && intfield > 4 && intfield > 5 "
     "&& "
     "intfield > 6 && intfield > 7 && intfield > 8 || intfield > 0",
     99},
    {"1&1", 100},
    {"0|1", 100},
    {"0^1", 100},
    {"seqfield4[1]==2", 100},
    {"arrfield1[1]==2", 100},
    {"arrfield3[1]==2", 100},
    {"seqfield3[1]==2", 100},
    {"1 | (1 | (1 | 1))", 100},
    {"1 >= (1 >= (1 >= 1))", 100},
    {"(0x101 & 0x100) == 0x100", 100},
    {"(0x101 | 0x10100) == 0x10101", 100},
    {"(0xF00F0F ^ 0xFF0F00) == 0x0F000F", 100},
    {"(1 << 1) == 2", 100},
    {"(4 >> 1) == 2", 100},
    {"(1 << 8) == 256", 100},
    {"(262144 >> 16) == 4", 100},
    {"(~0 & 0xffff) == 0xffff", 100},
    {"(~0 & 0xffffffff) == 0xffffffff", 100},
    {"(~0 & 0xffffffffffffffff) == 0xffffffffffffffff", 100},
    {"-1==~0", 100},
    {"~0>>4==0x0fffffffffffffff", 100},
    {"1<<-1", 0},
    {"1<<10000", 0},
    {"(1<<63) < 0", 100},
    {"(1<<2!=4)==0", 100},
    {"1&3==1", 100},
    {"(3|1==3)==1", 100},
    {"(2^1==3)==1", 100},
    {"(1 << 32) == 4294967296", 100},
    {"(1 << 63) == 9223372036854775808", 100},
    {"(arrfield1[2] & 1) == 1", 100},
    {"(arrfield1[2] | 0x111000) == 0x111003", 100},
    {"(arrfield1[0] | arrfield1[1] | arrfield1[2]) == 0x3", 100},
    {"(seqfield4[2] & 1) == 1", 100},
    {"(seqfield4[2] | 0x111000) == 0x111003", 100},
    {"intfield < 0xDEADBEEF", 100},
    {"intfield < 0x2", 2},
    {"intfield < 02", 2},
    {R"(stringfield2 == "\\*")", 100},
    {"1.0 || intfield || 1.0", 100},
    {"1 < intfield", 98},
    {"$ctx.vtid == 0", 0},
    {"$ctx.vtid != 0", 100},
    {"0 == $ctx.vtid", 0},
    {"0 != $ctx.vtid", 100},
    {"$ctx.vpid == 0", 0},
    {"$ctx.vpid != 0", 100},
    {"0 == $ctx.vpid", 0},
    {"0 != $ctx.vpid", 100},
    {"$ctx.procname != \"program\"", 0},
    {"$ctx.procname == \"program\"", 100},
    {"\"program\" != $ctx.procname", 0},
    {"\"program\" == $ctx.procname", 100},
    {"$ctx.procname != \"program*\"", 0},
    {"$ctx.procname == \"program*\"", 100},
    {"\"program*\" != $ctx.procname", 0},
    {"\"program*\" == $ctx.procname", 100},
    {"$ctx.procname != \"*\"", 0},
    {"$ctx.procname == \"*\"", 100},
    {"\"*\" != $ctx.procname", 0},
    {"\"*\" == $ctx.procname", 100},
    {"!a.f.d", 0},
    {"a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a", 0},
    {"$ctx.vtid.blah == 0", 0},
    {"asdf.asdfsd.sadf < 4", 0},
    {"0 == $ctx.vtid.blah", 0},
    {"arrfield1 != \"dontmatch\"", 0},
    {"seqfield1 != \"dontmatch\"", 0},
};

// Events of the second table: `str` is each of these.
constexpr const char* kWords[] = {"hypothecary",    "apothecary", "scary",  "hypothesize",
                                  "hypothesizing",  "decimal",    "dermal", "emesis",
                                  "electrothermic", "conformal"};
constexpr int kAll = std::size(kWords);

constexpr Verdict kOfTexts[] = {
    {R"(str == "hypothecary")", 1},
    {R"("hypothecary" == str)", 1},
    {R"(str != "hypothecary")", 9},
    {R"("hypothecary" != str)", 9},
    {R"(str == "*cary")", 3},
    {R"("*cary" == str)", 3},
    {R"(str != "*cary")", 7},
    {R"("*cary" != str)", 7},
    {R"(str == "hypo*")", 3},
    {R"("hypo*" == str)", 3},
    {R"(str != "hypo*")", 7},
    {R"("hypo*" != str)", 7},
    {R"(str == "*the*")", 5},
    {R"("*the*" == str)", 5},
    {R"(str != "*the*")", 5},
    {R"("*the*" != str)", 5},
    {R"(str == "**")", kAll},
    {R"("**" == str)", kAll},
    {R"(str != "**")", 0},
    {R"("**" != str)", 0},
    {R"(str == "sc*")", 1},
    {R"("sc*" == str)", 1},
    {R"(str != "sc*")", 9},
    {R"("sc*" != str)", 9},
    {R"(str == "de*al")", 2},
    {R"("de*al" == str)", 2},
    {R"(str != "de*al")", 8},
    {R"("de*al" != str)", 8},
    {R"(str == "*po*siz*")", 2},
    {R"("*po*siz*" == str)", 2},
    {R"(str != "*po*siz*")", 8},
    {R"("*po*siz*" != str)", 8},
    {R"(str == "*po***siz*")", 2},
    {R"("*po***siz*" == str)", 2},
    {R"(str != "*po***siz*")", 8},
    {R"("*po***siz*" != str)", 8},
    {R"(str == "*po*\**siz*")", 0},
    {R"("*po*\**siz*" == str)", 0},
    {R"(str == "*zulu*")", 0},
    {R"("*zulu*" == str)", 0},
    {R"(str == "8*")", 0},
    {R"("8*" == str)", 0},
    {R"(str == "*8")", 0},
    {R"("*8" == str)", 0},
    {R"(str == "de\*al")", 0},
    {R"("de\*al" == str)", 0},
    {R"("salut*" == "salut vous")", kAll},
    {R"("salut*" == "salut vous*")", kAll},
    {R"("salut vous*" == "salut*")", kAll},
    // These are not in that list; they follow from the two above.
    {R"("salut*" != "salut vous*")", 0},
    {R"("salut*" == "sal*")", kAll},
    {R"("salut*" == "hello*")", 0},
    {R"("salut*" != "hello*")", kAll},
    {R"("*" == "salut*")", kAll},
    {R"("sal\*ut*" == "sal\**")", kAll},
    {R"("sal\*ut*" == "salut*")", 0},
    // Kirk J. Krauss, "Matching Wildcards: An Empirical Way to Tame an Algorithm" (Dr. Dobb's,
    // 2014).
    {R"("abcccd" == "*ccd")", kAll},
    {R"("mississipissippi" == "*issip*ss*")", kAll},
    {R"("xxxx\*zzzzzzzzy\*f" == "xxxx*zzy*fffff")", 0},
    {R"("xxxx\*zzzzzzzzy\*f" == "xxx*zzy*f")", kAll},
    {R"("xxxxzzzzzzzzyf" == "xxxx*zzy*fffff")", 0},
    {R"("xxxxzzzzzzzzyf" == "xxxx*zzy*f")", kAll},
    {R"("xyxyxyzyxyz" == "xy*z*xyz")", kAll},
    {R"("mississippi" == "*sip*")", kAll},
    {R"("xyxyxyxyz" == "xy*xyz")", kAll},
    {R"("mississippi" == "mi*sip*")", kAll},
    {R"("ababac" == "*abac*")", kAll},
    {R"("aaazz" == "a*zz*")", kAll},
    {R"("a12b12" == "*12*23")", 0},
    {R"("a12b12" == "a12b")", 0},
    {R"("a12b12" == "*12*12*")", kAll},
    {R"("\*" == "*")", kAll},
    {R"("a\*abab" == "a*b")", kAll},
    {R"("a\*r" == "a*")", kAll},
    {R"("a\*ar" == "a*aar")", 0},
    {R"("XYXYXYZYXYz" == "XY*Z*XYz")", kAll},
    {R"("missisSIPpi" == "*SIP*")", kAll},
    {R"("mississipPI" == "*issip*PI")", kAll},
    {R"("miSsissippi" == "mi*sip*")", kAll},
    {R"("miSsissippi" == "mi*Sip*")", 0},
    {R"("abAbac" == "*Abac*")", kAll},
    {R"("aAazz" == "a*zz*")", kAll},
    {R"("A12b12" == "*12*23")", 0},
    {R"("a12B12" == "*12*12*")", kAll},
    {R"("oWn" == "*oWn*")", kAll},
    {R"("bLah" == "bLah")", kAll},
    {R"("bLah" == "bLaH")", 0},
    {R"("aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaab" == "a*a*a*a*a*a*aa*aaa*a*a*b")", kAll},
    {R"("ababababababababacacacacacadaeafagahaiajakalaaaaaaffafagaagggagaaaab" == )"
     R"("*a*b*ba*ca*a*aa*aaa*fa*ga*b*")",
     kAll},
    {R"("ababababababababacacacacacadaeafagahaiajakalaaaaaaffafagaagggagaaaab" == )"
     R"("*a*b*ba*ca*a*x*aaa*fa*ga*b*")",
     0},
    {R"("ababababababababacacacacacadaeafagahaiajakalaaaaaaffafagaagggagaaaab" == )"
     R"("*a*b*ba*ca*aaaa*fa*ga*gggg*b*")",
     0},
    {R"("ababababababababacacacacacadaeafagahaiajakalaaaaaaffafagaagggagaaaab" == )"
     R"("*a*b*ba*ca*aaaa*fa*ga*ggg*b*")",
     kAll},
    {R"("aaabbaabbaab" == "*aabbaa*a*")", kAll},
    {R"("a\*a\*a\*a\*a\*a\*a\*a\*a\*" == "a*a*a*a*a*a*a*a*a*")", kAll},
    {R"("aaaaaaaaaaaaaaaaa" == "*a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*")", kAll},
    {R"("aaaaaaaaaaaaaaaa" == "*a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*")", 0},
    {R"("abc\*abcd\*abcde\*abcdef\*abcdefg\*abcdefgh" == "abc*abc*abc*abc*abc*abc*abc*")", 0},
    {R"("abc\*abcd\*abcde\*abcdef\*abcdefg\*abcdefgh" == "abc*abc*abc*abc*abc*abc*")", kAll},
    {R"("abc\*abcd\*abcd\*abc\*abcd" == "abc*abc*abc*abc*abc")", 0},
    {R"("abc\*abc\*abc\*abc\*abcd" == "abc*abc*abc*abc*abcd")", kAll},
};

constexpr const char* kRefused[] = {
    // arithmetic
    "intfield*1",
    "intfield/1",
    "intfield+1",
    "intfield-1",
    "intfield % 1",
    "1+11111-3333+1",
    "(1+2)*(55*666)",
    "1+2*55*666",
    "asdf + 1 > 1",
    "asdfas < 2332 || asdf + 1 > 1",
    "!+-+++-------+++++++++++-----!!--!44+1",
    "aaa||(gg)+(333----1)",
    "1+1",
    // grammar
    "((((((((((((((intfield)))))))))))))",
    "0 || (\"abc\" != \"def\")) && (3 < 4)",
    "a->",
    "a-->a",
    "a.b.c->d.e.f+1",
    "field[abc] == 1",
    // texts in a place where they have no meaning
    "\"somestring\"",
    "!\"somestring\"",
    "\"somestring\" > 42",
    "\"somestring\" > 42.0",
    "42 > \"somestring\"",
    "42.0 > \"somestring\"",
    "\"somestring\" || 1",
    "1 || \"somestring\"",
    // names
    "$ctx == 0",
    "0 == $ctx",
    "$global.value == 0",
    "0 == $global.value",
    // patterns
    "\"hello*world\" == \"yes*man\"",
    "\"hello*world\" == \"yesman*\"",
    "\"helloworld*\" == \"yes*man\"",
    "\"hello*world\" < field",
    "\"hello*world\" <= field",
    "\"hello*world\" >= field",
    "\"hello*world\" > field",
    "\"hello*world\" || field",
    "\"hello*world\" && field",
    "field < \"hello*world\"",
    "field <= \"hello*world\"",
    "field >= \"hello*world\"",
    "field > \"hello*world\"",
    "field && \"hello*world\"",
    "field || \"hello*world\"",
};

TestContexts Contexts() {
  TestContexts contexts;
  contexts.entries = {
      {"vpid", WEFT_FILTER_SYMBOL_CONTEXT, WEFT_FILTER_INT, int64_t{17}},
      {"vtid", WEFT_FILTER_SYMBOL_CONTEXT, WEFT_FILTER_INT, int64_t{18}},
      {"procname", WEFT_FILTER_SYMBOL_CONTEXT, WEFT_FILTER_STRING, std::string("program")},
  };
  return contexts;
}

// A filter that cannot be linked to the event lets none pass, as in a traced program.
bool Passes(const std::vector<uint8_t>& program, TestEvent& event) {
  TestContexts contexts = Contexts();
  const LinkedFilter filter(program, event.encoded(), &contexts);
  return filter.error == 0 && filter.Run(event, &contexts);
}

void AddNumbers(TestEvent& event, int i) {
  event.Number<int32_t>("intfield", i)
      .Number<int32_t>("intfield2", i)
      .Number<int64_t>("longfield", i)
      .Number<int32_t>("netintfield", i, WEFT_FIELD_NETWORK)
      .Array<int64_t>("arrfield1", {1, 2, 3}, WEFT_FIELD_INLINE)
      .Array<uint32_t>("arrfield3", {1, 2, 3}, WEFT_FIELD_INLINE | WEFT_FIELD_NETWORK)
      .Sequence<char>("seqfield1", {'t', 'e', 's', 't'})
      .Sequence<uint32_t>("seqfield3", {1, 2, 3}, WEFT_FIELD_NETWORK)
      .Sequence<int64_t>("seqfield4", {1, 2, 3})
      .Text("stringfield", "test")
      .Text("stringfield2", "\\*")
      .Number<float>("floatfield", 2222)
      .Number<double>("doublefield", 2);
  event.Build();
}

TEST(FilterPeer, NumbersPassAsInLttng) {
  std::vector<TestEvent> events(kNumbers);
  for (int i = 0; i < kNumbers; ++i) AddNumbers(events[static_cast<size_t>(i)], i);
  for (const Verdict& verdict : kOfNumbers) {
    const auto program = CompileFilter(verdict.expression);
    ASSERT_TRUE(program) << verdict.expression;
    int count = 0;
    for (TestEvent& event : events) count += Passes(*program, event) ? 1 : 0;
    EXPECT_EQ(count, verdict.count) << verdict.expression;
  }
}

TEST(FilterPeer, TextsPassAsInLttng) {
  std::vector<TestEvent> events(kAll);
  for (size_t i = 0; i < events.size(); ++i) events[i].Text("str", kWords[i]).Build();
  for (const Verdict& verdict : kOfTexts) {
    const auto program = CompileFilter(verdict.expression);
    ASSERT_TRUE(program) << verdict.expression;
    int count = 0;
    for (TestEvent& event : events) count += Passes(*program, event) ? 1 : 0;
    EXPECT_EQ(count, verdict.count) << verdict.expression;
  }
}

TEST(FilterPeer, RefusesWhatLttngRefuses) {
  for (const char* expression : kRefused) EXPECT_FALSE(CompileFilter(expression)) << expression;
  std::string huge = "intfield";
  for (int i = 0; i < 5461; ++i) huge += " && 1";
  EXPECT_FALSE(CompileFilter(huge));
}

}  // namespace
}  // namespace weft
