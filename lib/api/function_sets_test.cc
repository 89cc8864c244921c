// SPDX-License-Identifier: Apache-2.0
#include "lib/api/function_sets.h"

#include <fnmatch.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "lib/api/function_args.h"
#include "lib/api/names.h"
#include "lib/api/value_type.h"

namespace weft::api {
namespace {

TEST(FunctionSets, HaveSoundRules) {
  for (size_t i = 0; i < kFunctionSets.size(); ++i) {
    std::set<std::pair<std::string, std::string>> seen;
    const auto rules = ExpandSet({.set = static_cast<FunctionSet>(i)});
    EXPECT_GE(rules.size(), 5u);
    for (const FunctionRule& rule : rules) {
      EXPECT_TRUE(seen.emplace(rule.name, rule.object).second) << rule.name;
      EXPECT_EQ(WhyNotArgs(rule), "") << rule.name;
      EXPECT_EQ(rule.record.size(), 1u);
      EXPECT_EQ(rule.set, static_cast<FunctionSet>(i));
      for (const FunctionArg& arg : rule.args) {
        EXPECT_EQ(CheckIdentifier(arg.name), "") << rule.name;
        EXPECT_LT(static_cast<size_t>(arg.type), kSingleTypes.size()) << rule.name << arg.name;
      }
    }
  }
}

TEST(FunctionSets, AreChangedByTheRestOfTheRule) {
  const auto rules = ExpandSet({.object = "libmine.so",
                                .filter = "duration > 1",
                                .record = {FunctionMoment::kExit},
                                .set = FunctionSet::kDl});
  ASSERT_EQ(rules.size(), 5u);
  for (const FunctionRule& rule : rules) {
    EXPECT_EQ(rule.object, "libmine.so");
    EXPECT_EQ(rule.filter, "duration > 1");
  }
  EXPECT_EQ(rules[0].name, "dlopen");
  EXPECT_EQ(rules[0].record, std::vector{FunctionMoment::kEntry});
  EXPECT_EQ(rules[4].name, "dlclose");
  EXPECT_EQ(rules[4].record, std::vector{FunctionMoment::kExit});
  EXPECT_EQ(ExpandSet({.name = "f"}), std::vector{FunctionRule{.name = "f"}});
}

TEST(FunctionSets, HaveFilesOfEachCLibrary) {
  for (const FunctionSet set :
       {FunctionSet::kMalloc, FunctionSet::kPthread, FunctionSet::kDl, FunctionSet::kIo})
    for (const char* file : {"libc.so.6", "libc-2.31.so", "ld-musl-x86_64.so.1"})
      EXPECT_TRUE(std::ranges::any_of(ExpandSet({.set = set}), [file](const FunctionRule& rule) {
        return fnmatch(rule.object.c_str(), file, 0) == 0;
      })) << file;
}

TEST(FunctionSets, TellWhichFunctionsOfTheCLibraryRunInNoChild) {
  EXPECT_TRUE(IsOfCLibrarySet("malloc"));
  EXPECT_TRUE(IsOfCLibrarySet("close"));
  for (const char* name : {"dup2", "fcntl", "execve", "sigaction", "SSL_read", "mallo", ""})
    EXPECT_FALSE(IsOfCLibrarySet(name)) << name;
}

}  // namespace
}  // namespace weft::api
