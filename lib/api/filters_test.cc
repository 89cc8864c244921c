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

}  // namespace
}  // namespace weft::api
