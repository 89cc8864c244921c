// SPDX-License-Identifier: Apache-2.0
#include "lib/api/rule_check.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "lib/api/limits.h"

namespace weft::api {
namespace {

EventDescription Event(const std::string& name, const std::vector<std::string>& integers = {}) {
  EventDescription event{.name = name};
  for (const std::string& field : integers) event.fields.push_back({.name = field});
  event.ComputeLayout();
  return event;
}

class RuleCheckTest : public testing::Test {
 protected:
  std::string Check(EventRule rule, const std::string& filter = "") {
    std::string problem = WhyNotOffered(rule, filter, events_);
    std::ranges::reverse(events_);
    EXPECT_EQ(WhyNotOffered(rule, filter, events_), problem) << "it depends on the order";
    return problem;
  }

  std::vector<EventDescription> events_ = {Event("shop:order", {"id", "amount"}),
                                           Event("shop:refund", {"id"})};
};

TEST_F(RuleCheckTest, AcceptsRulesThatProgramsOffer) {
  for (const char* name :
       {"shop:order", "shop:*", "*", "lttng_ust_statedump:*", "weft_x:y", "function:main_entry"}) {
    EXPECT_EQ(Check({.name = name}), "") << name;
  }
  EXPECT_EQ(Check({.name = "shop:*", .filter = "amount > 3"}), "") << "one of them has it";
  EXPECT_EQ(Check({.name = "shop:order", .filter = "id == 1"}, "amount > 3 && $ctx.vpid > 1"), "");
}

TEST_F(RuleCheckTest, NamesTheNearestEvent) {
  EXPECT_EQ(Check({.name = "shop:oder"}),
            "event \"shop:oder\": running programs offer no such tracepoint, did you mean "
            "\"shop:order\"?");
  EXPECT_EQ(Check({.name = "payment:*"}),
            "event \"payment:*\": running programs offer no tracepoint that it matches; valid "
            "here: shop:order, shop:refund");
  events_.clear();
  EXPECT_EQ(Check({.name = "shop:order"}),
            "event \"shop:order\": running programs offer no tracepoints");
}

TEST_F(RuleCheckTest, NamesTheNearestField) {
  EXPECT_EQ(Check({.name = "shop:order", .filter = "amont > 3"}),
            "filter of event \"shop:order\": no event that running programs offer for it has a "
            "field \"amont\", did you mean \"amount\"?");
  EXPECT_EQ(Check({.name = "shop:refund"}, "amount > 3"),
            "filter of event \"shop:refund\": no event that running programs offer for it has a "
            "field \"amount\"; valid here: id");
  EXPECT_EQ(Check({.name = "shop:order", .filter = "id == \"x\""}),
            "filter of event \"shop:order\": no event that running programs offer for it has "
            "fields of the types that it takes");
}

TEST_F(RuleCheckTest, OneEventThatPassesIsEnough) {
  EventDescription& text = events_.emplace_back(Event("shop:text", {"id"}));
  text.fields[0] = {.name = "id", .kind = FieldKind::kString, .elem_size = 1};
  text.ComputeLayout();
  EXPECT_EQ(Check({.name = "shop:*", .filter = "id == 1"}), "");
  EXPECT_EQ(Check({.name = "shop:*", .filter = "id == \"x\""}), "");
  EXPECT_NE(Check({.name = "shop:*", .filter = "id == \"x\""}, "amount > 1"), "")
      << "no event passes both";
}

TEST_F(RuleCheckTest, StaysPrintableAndShort) {
  events_ = {Event("shop:\xe2\x80\xae"
                   "evil"),
             Event("shop:" + std::string(5000, 'x'))};
  for (int i = 0; i < 100; ++i)
    events_.push_back(Event("a" + std::string(240, 'b') + std::to_string(i)));
  const std::string problem = Check({.name = "q"});
  EXPECT_EQ(problem.size(), limits::kRuleProblem);
  EXPECT_TRUE(std::ranges::all_of(problem, [](char c) { return c >= ' ' && c < 0x7f; }));
}

}  // namespace
}  // namespace weft::api
