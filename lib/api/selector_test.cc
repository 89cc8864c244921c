// SPDX-License-Identifier: Apache-2.0
// Label selectors against labels.
#include "lib/api/selector.h"

#include <gtest/gtest.h>

#include <map>
#include <string>

#include "lib/api/parse.h"

namespace weft::api {
namespace {

using Labels = std::map<std::string, std::string>;
using enum SelectorOperator;

TEST(Selector, MatchesAsKubernetesDoes) {
  const Labels shop = {{"app", "shop"}, {"tier", "front"}, {"empty", ""}};
  const struct {
    LabelSelector selector;
    bool matches;
    const char* why;
  } cases[] = {
      {{}, true, "an empty selector selects everything"},
      {{{{"app", "shop"}}, {}}, true, "equal"},
      {{{{"app", "Shop"}}, {}}, false, "case counts"},
      {{{{"app", "shop"}, {"tier", "back"}}, {}}, false, "all must hold"},
      {{{{"none", ""}}, {}}, false, "a missing label is not an empty one"},
      {{{{"empty", ""}}, {}}, true, "an empty value"},
      {{{}, {{"app", kIn, {"a", "shop"}}}}, true, "In"},
      {{{}, {{"app", kIn, {"a", "b"}}}}, false, "not In"},
      {{{}, {{"none", kIn, {""}}}}, false, "In wants the label"},
      {{{}, {{"app", kNotIn, {"a"}}}}, true, "NotIn"},
      {{{}, {{"app", kNotIn, {"shop"}}}}, false, "in NotIn"},
      {{{}, {{"none", kNotIn, {"a"}}}}, true, "NotIn holds without the label"},
      {{{}, {{"app", kExists, {}}}}, true, "Exists"},
      {{{}, {{"none", kExists, {}}}}, false, "does not exist"},
      {{{}, {{"none", kDoesNotExist, {}}}}, true, "DoesNotExist"},
      {{{}, {{"app", kDoesNotExist, {}}}}, false, "it does"},
      {{{{"app", "shop"}}, {{"tier", kIn, {"back"}}}}, false, "labels and expressions"},
  };
  for (const auto& c : cases) EXPECT_EQ(Matches(c.selector, shop), c.matches) << c.why;
  EXPECT_TRUE(Matches({}, {}));
}

TEST(Selector, Containers) {
  EXPECT_TRUE(MatchesContainer({}, "any"));
  EXPECT_TRUE(MatchesContainer({.containers = {"a", "b"}}, "b"));
  EXPECT_FALSE(MatchesContainer({.containers = {"a", "b"}}, "c"));
}

TEST(Selector, AsAQuery) {
  const LabelSelector selector = {{{"app", "shop"}, {"v", "2"}},
                                  {{"tier", kIn, {"a", "b"}},
                                   {"x", kNotIn, {"c"}},
                                   {"y", kExists, {}},
                                   {"z", kDoesNotExist, {}}}};
  EXPECT_EQ(ToQuery(selector), "app=shop,v=2,tier in (a,b),x notin (c),y,!z");
  EXPECT_EQ(ToQuery({}), "");
}

TEST(Selector, IsReadFromJson) {
  const auto read = ParseLabelSelector(
      "--selector", R"({"matchLabels":{"a":"b"},)"
                    R"("matchExpressions":[{"key":"x","operator":"NotIn","values":["y"]}]})");
  ASSERT_TRUE(read) << ToString(read.error());
  EXPECT_EQ(*read, (LabelSelector{{{"a", "b"}}, {{"x", kNotIn, {"y"}}}}));
  EXPECT_EQ(ParseLabelSelector("", "{}"), LabelSelector{});
  const auto wrong =
      ParseLabelSelector("--selector", R"({"matchExpressions":[{"key":"x","operator":"Near"}]})");
  ASSERT_FALSE(wrong);
  EXPECT_TRUE(wrong.error().front().ToString().starts_with("--selector:"));
  for (const char* text : {"", "[]", "x", "{} {}", R"({"matchLabels":1})", R"({"match":{}})"})
    EXPECT_FALSE(ParseLabelSelector("", text)) << text;
}

}  // namespace
}  // namespace weft::api
