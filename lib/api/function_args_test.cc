// SPDX-License-Identifier: Apache-2.0
#include "lib/api/function_args.h"

#include <gtest/gtest.h>

namespace weft::api {
namespace {

TEST(MemberPath, HasStepsAndMembers) {
  std::string why;
  const auto path = ParseMemberPath("request->header.size->0x10", why);
  ASSERT_TRUE(path) << why;
  EXPECT_EQ(*path, (MemberPath{.argument = "request", .steps = {{"header", "size"}, {"0x10"}}}));
  EXPECT_TRUE(ParseMemberPath("&r->name", why)->is_address);
}

TEST(MemberPath, OfAnotherFormIsRefused) {
  for (const char* text : {"", "r", "r.a", "->a", "r->", "r->a.", "r->.a", "r->a->", "&", "1->a",
                           "r->-1", "r->a b", "r->a->b->c->d->e", "r->4294967296"}) {
    std::string why;
    EXPECT_FALSE(ParseMemberPath(text, why)) << text;
    EXPECT_NE(why, "") << text;
  }
}

TEST(Count, IsDecimalOrHexadecimal) {
  EXPECT_EQ(ParseCount("16"), 16u);
  EXPECT_EQ(ParseCount("0x1f"), 31u);
  for (const char* text : {"", "0x", "-1", "1 ", "2147483648", "a"}) EXPECT_FALSE(ParseCount(text));
}

FunctionRule With(std::vector<FunctionArg> args) { return {.name = "f", .args = std::move(args)}; }

TEST(Args, ThatFitAreTaken) {
  const FunctionArg p{.name = "p", .type = ValueType::kPointer};
  const FunctionArg n{.name = "n", .type = ValueType::kUint32};
  FunctionRule rule = With({p, n});
  EXPECT_EQ(WhyNotArgs(rule), "");
  rule.args.push_back({.name = "d", .type = ValueType::kBytes, .length = "n"});
  rule.args.push_back({.name = "e", .type = ValueType::kBytes, .length = "16"});
  rule.args.push_back({.name = "m", .type = ValueType::kInt8, .path = "p->4"});
  EXPECT_EQ(WhyNotArgs(rule), "");
  rule.args.push_back({.name = "r", .type = ValueType::kBytes, .length = "return"});
  rule.returns = ValueType::kInt64;
  EXPECT_EQ(WhyNotArgs(rule), "");
  // Without arguments, the names are those of the debug information.
  EXPECT_EQ(WhyNotArgs(With({{.name = "m", .type = ValueType::kInt8, .path = "any->4"}})), "");
}

TEST(Args, ThatDoNotFitAreRefusedWithWhatThereIs) {
  const FunctionArg p{.name = "p", .type = ValueType::kPointer};
  const FunctionArg x{.name = "x", .type = ValueType::kDouble};
  EXPECT_EQ(WhyNotArgs(With({p, x, {.name = "d", .type = ValueType::kBytes, .length = "n"}})),
            "argument \"d\" has length \"n\", which is no integer argument of the rule (they are: "
            "p), no number and not return");
  EXPECT_EQ(WhyNotArgs(With({p, x, {.name = "m", .type = ValueType::kInt8, .path = "q->4"}})),
            "argument \"m\" has the path \"q->4\", and \"q\" is no argument of type pointer (they "
            "are: p)");
  const struct {
    FunctionArg arg;
    const char* said;
  } cases[] = {
      {p, "is there twice"},
      {{.name = "d", .type = ValueType::kBytes}, "needs a length"},
      {{.name = "d", .type = ValueType::kInt8, .length = "4"}, "only type bytes has"},
      {{.name = "d", .type = ValueType::kBytes, .length = "x"}, "no integer argument"},
      {{.name = "d", .type = ValueType::kBytes, .length = "return"}, "needs returns"},
      {{.name = "m", .type = ValueType::kInt8, .path = "p.4"}, "must be ARGUMENT->MEMBER"},
      {{.name = "m", .type = ValueType::kInt8, .path = "x->4"}, "no argument of type pointer"},
      {{.name = "m", .type = ValueType::kInt8, .path = "&p->4"}, "leave out the &"}};
  for (const auto& [arg, said] : cases)
    EXPECT_NE(WhyNotArgs(With({p, x, arg})).find(said), std::string::npos)
        << WhyNotArgs(With({p, x, arg}));
  FunctionRule entry = With({{.name = "d", .type = ValueType::kBytes, .length = "return"}});
  entry.returns = ValueType::kInt64;
  entry.record = {FunctionMoment::kEntry};
  EXPECT_NE(WhyNotArgs(entry).find("record exit or call"), std::string::npos);
}

}  // namespace
}  // namespace weft::api
