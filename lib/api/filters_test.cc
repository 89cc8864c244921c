// SPDX-License-Identifier: Apache-2.0
#include "lib/api/filters.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace weft::api {
namespace {

using testing::HasSubstr;

TEST(FiltersTest, AcceptsFiltersThatCanMatch) {
  for (const char* filter : {"a == 1", "$ctx.vpid > 5 && $ctx.procname == \"s*\"",
                             "$app.shop:user == 3", "$ctx.prio < 3"}) {
    EXPECT_FALSE(CheckFilter(filter).has_value()) << filter;
  }
}

TEST(FiltersTest, RefusesFiltersThatNeverMatch) {
  struct Case {
    const char* filter;
    size_t offset;
    const char* message;
  };
  for (const auto& [filter, offset, message] : {
           Case{"a == ", 5, "expected"},
           Case{"a == \"x\" + 1", 9, ""},
           Case{"a == 1 && $ctx.vpdi > 5", 10, "did you mean \"vpid\"?"},
           Case{"$ctx.perf:thread:cycles > 1", 0, "cannot read perf counters"},
       }) {
    const auto problem = CheckFilter(filter);
    ASSERT_TRUE(problem.has_value()) << filter;
    EXPECT_EQ(problem->offset, offset) << filter;
    EXPECT_THAT(problem->message, HasSubstr(message));
    EXPECT_EQ(problem->place, "column " + std::to_string(offset + 1)) << filter;
  }
  EXPECT_EQ(CheckFilter("a == 1 && $ctx.vpdi > 5")->excerpt,
            "  a == 1 && $ctx.vpdi > 5\n            ^~~~~~~~~\n");
}

TEST(FiltersTest, NamesItsFieldsOnce) {
  using testing::ElementsAre;
  EXPECT_THAT(FieldsOfFilter("a > 1 && $ctx.vpid == b || a[2] == 5 && !$app.p:c && c.d == \"a\""),
              ElementsAre("a", "b", "c.d"));
  EXPECT_THAT(FieldsOfFilter(""), ElementsAre());
  EXPECT_THAT(FieldsOfFilter("a >"), ElementsAre());
}

TEST(FiltersTest, NamesFieldsAndContexts) {
  EXPECT_THAT(NamesInFilter("a > 1 && $ctx.vpid == a && $app.p:c == 2"),
              testing::ElementsAre("a", "$ctx.vpid", "$app.p:c"));
}

// Returns what is said when a Trace with this rule of a function is parsed.
std::string Refusal(const std::string& rule, const std::string& spec = "") {
  const auto traces =
      ParseTraces("t.yaml",
                  "apiVersion: weft.dev/v1alpha1\nkind: Trace\nmetadata: {name: t}\nspec:\n" +
                      spec + "  user: {functions: [{" + rule + "}]}\n",
                  CheckingFilters());
  return traces ? "" : ToString(traces.error());
}

TEST(FiltersTest, OfAFunctionNamesWhatItsEventsHave) {
  for (const char* rule :
       {"name: f, filter: 'size > 3'", "name: f, record: [exit], filter: 'ret > 3 && size > 1'",
        "name: f, record: [call], filter: 'duration > 3 || unwound == 1'",
        "name: f, filter: 'depth == 0 && $ctx.vpid > 1'", "set: malloc, filter: 'ret > 3'",
        "name: f, args: [{name: ret, type: int8}], record: [entry], filter: 'ret_ > 3'",
        "name: f, args: [{name: m, type: int8, path: 'any->4'}], filter: 'faults == 0'"})
    EXPECT_EQ(Refusal(rule), "") << rule;
  const std::pair<const char*, const char*> cases[] = {
      {"name: f, filter: 'ret > 3'",
       "filter: names \"ret\", which entry events of it do not have; they have the function's "
       "arguments, depth. Give record: [exit] or [call]"},
      {"name: f, record: [exit], filter: 'duration > 3'", "Give record: [call]"},
      {"name: f, filter: 'faults == 0'", "names \"faults\""},
      {"name: f, args: [{name: b, type: int8}], filter: 'a > 3'", "they have b, depth"},
      {"set: dl, filter: 'size > 3'", "names what no function of the set has"},
      {"set: dl, filter: '$app.a:b > 3'", "names \"$app.a:b\": filters of functions cannot read"},
      {"name: f, filter: '$app.a:b > 3'", "such as $ctx.procname"}};
  for (const auto& [rule, said] : cases) EXPECT_THAT(Refusal(rule), HasSubstr(said)) << rule;
  EXPECT_THAT(Refusal("name: f", "  filter: '$app.a:b == 1'\n"),
              HasSubstr("spec.filter: \"$app.a:b\" is a context of an application"));
  EXPECT_THAT(Refusal("name: f", "  context: ['$app.a:b']\n"), HasSubstr("spec.context: \"$app."));
}

}  // namespace
}  // namespace weft::api
