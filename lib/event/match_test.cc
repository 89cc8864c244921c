// SPDX-License-Identifier: Apache-2.0
#include "lib/event/match.h"

#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <vector>

namespace weft {
namespace {

bool Glob(std::string_view pattern, std::string_view text) {
  return weft_glob_match(pattern.data(), static_cast<uint32_t>(pattern.size()), text.data(),
                         static_cast<uint32_t>(text.size()));
}

// Matches by match.h's definition, by trying everything.
bool Oracle(std::string_view pattern, std::string_view text) {
  if (pattern.empty()) return text.empty();
  if (pattern[0] == '*') {
    for (size_t skip = 0; skip <= text.size(); ++skip) {
      if (Oracle(pattern.substr(1), text.substr(skip))) return true;
    }
    return false;
  }
  const size_t quoted = pattern[0] == '\\' && pattern.size() > 1 ? 1 : 0;
  return !text.empty() && pattern[quoted] == text[0] &&
         Oracle(pattern.substr(quoted + 1), text.substr(1));
}

std::vector<std::string> AllStrings(std::string_view alphabet, size_t longest) {
  std::vector<std::string> all = {""};
  for (size_t begin = 0, size = 1; size <= longest; ++size) {
    const size_t end = all.size();
    for (; begin < end; ++begin) {
      for (const char c : alphabet) all.push_back(all[begin] + c);
    }
  }
  return all;
}

TEST(GlobMatch, AgreesWithTryingEverythingOnAllSmallInputs) {
  const std::vector<std::string> patterns = AllStrings("ab*\\", 5);
  const std::vector<std::string> texts = AllStrings("ab*\\", 4);
  for (const std::string& pattern : patterns) {
    for (const std::string& text : texts)
      ASSERT_EQ(Glob(pattern, text), Oracle(pattern, text)) << pattern << " on " << text;
  }
}

TEST(GlobMatch, TakesEventNames) {
  EXPECT_TRUE(weft_glob_match_str("shop:*", "shop:order"));
  EXPECT_TRUE(weft_glob_match_str("*", ""));
  EXPECT_TRUE(weft_glob_match_str("*:begin*_io", "disk:begin_read_io"));
  EXPECT_FALSE(weft_glob_match_str("shop:*", "shopping"));
  EXPECT_FALSE(weft_glob_match_str("", "x"));
}

TEST(GlobMatch, StaysWithinItsBoundOnHostilePatterns) {
  std::string pattern;
  for (int i = 0; i < 1000; ++i) pattern += "*a";
  pattern += "b";
  EXPECT_FALSE(Glob(pattern, std::string(20000, 'a')));
}

class MatchEvent : public ::testing::Test {
 protected:
  static bool Matches(const std::vector<const char*>& exclusions, const char* name,
                      int32_t loglevel = 6) {
    const weft_match_rule rule = {
        .pattern = "shop:*",
        .exclusion =
            [](const void* of, uint32_t i) {
              return (*static_cast<const std::vector<const char*>*>(of))[i];
            },
        .exclusions = &exclusions,
        .exclusion_count = static_cast<uint32_t>(exclusions.size()),
        .loglevel_min = 3,
        .loglevel_max = 7};
    return weft_match_event(&rule, name, loglevel);
  }
};

TEST_F(MatchEvent, WantsThePattern) {
  EXPECT_TRUE(Matches({}, "shop:order"));
  EXPECT_FALSE(Matches({}, "store:order"));
}

TEST_F(MatchEvent, WantsNoExclusion) {
  EXPECT_FALSE(Matches({"*:debug*", "shop:tick"}, "shop:debug_order"));
  EXPECT_FALSE(Matches({"*:debug*", "shop:tick"}, "shop:tick"));
  EXPECT_TRUE(Matches({"*:debug*", "shop:tick"}, "shop:ticks"));
  EXPECT_FALSE(Matches({nullptr, "shop:tick"}, "shop:tick")) << "one that cannot be read";
}

TEST_F(MatchEvent, WantsALogLevelInTheRange) {
  EXPECT_FALSE(Matches({}, "shop:order", 2));
  EXPECT_TRUE(Matches({}, "shop:order", 3));
  EXPECT_TRUE(Matches({}, "shop:order", 7));
  EXPECT_FALSE(Matches({}, "shop:order", 8));
}

}  // namespace
}  // namespace weft
