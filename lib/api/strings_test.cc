// SPDX-License-Identifier: Apache-2.0
// The single strings of a Trace: quantities, durations, names, patterns, levels, contexts, and the
// nearest name.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <random>
#include <string>
#include <vector>

#include "lib/api/context.h"
#include "lib/api/diagnostic.h"
#include "lib/api/limits.h"
#include "lib/api/log_level.h"
#include "lib/api/names.h"
#include "lib/api/nearest.h"
#include "lib/api/quantity.h"

namespace weft::api {
namespace {

using std::chrono::nanoseconds;
using testing::HasSubstr;

TEST(Quantity, ReadsKubernetesNotation) {
  const std::pair<std::string_view, std::uint64_t> cases[] = {
      {"0", 0},
      {"1", 1},
      {"+7", 7},
      {"4096", 4096},
      {"512Ki", 512 << 10},
      {"1Mi", 1 << 20},
      {"1.5Ki", 1536},
      {".5Ki", 512},
      {"5.Ki", 5120},
      {"2Gi", std::uint64_t{2} << 30},
      {"15Ei", std::uint64_t{15} << 60},
      {"1k", 1000},
      {"3M", 3'000'000},
      {"4G", 4'000'000'000},
      {"1e3", 1000},
      {"1E3", 1000},
      {"1E", 1'000'000'000'000'000'000},
      {"1e+2", 100},
      {"100e-2", 1},
      {"1.50", 0},  // replaced below: not whole
      {"4000m", 4},
      {"2000000u", 2},
      {"3000000000n", 3},
      {"18446744073709551615", std::numeric_limits<std::uint64_t>::max()},
      {"0.000Ki", 0},
  };
  for (const auto& [text, value] : cases) {
    const Result<std::uint64_t> got = ParseQuantity(text);
    if (text == "1.50") {
      EXPECT_FALSE(got.has_value());
      continue;
    }
    ASSERT_TRUE(got.has_value()) << text;
    EXPECT_EQ(*got, value) << text;
  }
}

TEST(Quantity, RefusesMalformedAndTooLarge) {
  for (const std::string_view text : {"",
                                      " ",
                                      "Ki",
                                      ".",
                                      "+",
                                      "-1",
                                      "-5Ki",
                                      "1 Ki",
                                      "1ki",
                                      "1KI",
                                      "1Kib",
                                      "KiKi",
                                      "1K",
                                      "1e",
                                      "1e+",
                                      "1e99",
                                      "1e-99",
                                      "1x",
                                      "0x10",
                                      "1..5",
                                      "1.2.3",
                                      "18446744073709551616",
                                      "16Ei",
                                      "20E",
                                      "1e20",
                                      "0.1",
                                      "1m",
                                      "1.0001Ki",
                                      "99999999999999999999Ki",
                                      "1_000",
                                      "NaN",
                                      "inf"}) {
    EXPECT_FALSE(ParseQuantity(text).has_value()) << text;
  }
}

TEST(Quantity, FormatsShortestAndExactly) {
  EXPECT_EQ(FormatQuantity(0), "0");
  EXPECT_EQ(FormatQuantity(1000), "1000");
  EXPECT_EQ(FormatQuantity(1024), "1Ki");
  EXPECT_EQ(FormatQuantity(1536), "1536");
  EXPECT_EQ(FormatQuantity(3 << 20), "3Mi");
  EXPECT_EQ(FormatQuantity(std::uint64_t{1} << 63), "8Ei");
  std::mt19937_64 random(1);
  for (int i = 0; i < 20'000; ++i) {
    const std::uint64_t value = random() >> (random() % 64) << (random() % 30);
    ASSERT_EQ(ParseQuantity(FormatQuantity(value)).value(), value);
  }
}

TEST(Duration, ReadsGosNotation) {
  const std::pair<std::string_view, std::int64_t> cases[] = {
      {"0", 0},
      {"0s", 0},
      {"1ns", 1},
      {"1us", 1'000},
      {"1µs", 1'000},
      {"1\u03bcs", 1'000},
      {"1ms", 1'000'000},
      {"1s", 1'000'000'000},
      {"1m", 60'000'000'000},
      {"1h", 3'600'000'000'000},
      {"1h30m", 5'400'000'000'000},
      {"1.5h", 5'400'000'000'000},
      {".5s", 500'000'000},
      {"1.s", 1'000'000'000},
      {"+10s", 10'000'000'000},
      {"-10s", -10'000'000'000},
      {"1m1m", 120'000'000'000},
      {"9223372036854775807ns", std::numeric_limits<std::int64_t>::max()},
  };
  for (const auto& [text, value] : cases) {
    const Result<nanoseconds> got = ParseDuration(text);
    ASSERT_TRUE(got.has_value()) << text;
    EXPECT_EQ(got->count(), value) << text;
  }
}

TEST(Duration, RefusesMalformedAndTooLarge) {
  for (const std::string_view text : {"",
                                      "1",
                                      "s",
                                      "10",
                                      "10 s",
                                      "1d",
                                      "1w",
                                      "1S",
                                      "1M",
                                      "--1s",
                                      "1s-1s",
                                      ".s",
                                      "1..s",
                                      "1hh",
                                      "0.1ns",
                                      "9223372036854775808ns",
                                      "2562048h",
                                      "1e3s",
                                      "1s ",
                                      "\u00b5s",
                                      "99999999999999999999s"}) {
    EXPECT_FALSE(ParseDuration(text).has_value()) << text;
  }
}

TEST(Duration, FormatsExactly) {
  using namespace std::chrono_literals;
  EXPECT_EQ(FormatDuration(0ns), "0s");
  EXPECT_EQ(FormatDuration(90min), "1h30m");
  EXPECT_EQ(FormatDuration(1500ms), "1s500ms");
  EXPECT_EQ(FormatDuration(-1us), "-1us");
  EXPECT_EQ(FormatDuration(nanoseconds::max()), "2562047h47m16s854ms775us807ns");
  std::mt19937_64 random(2);
  for (int i = 0; i < 20'000; ++i) {
    const nanoseconds value(static_cast<std::int64_t>(random()) >> (random() % 63));
    ASSERT_EQ(ParseDuration(FormatDuration(value)).value(), value);
  }
}

TEST(Names, TraceNames) {
  for (const std::string_view name : {"a", "0", "a-b", "shop", "shop.v2", "a.b.c", "x1-2.3-y"})
    EXPECT_EQ(CheckTraceName(name), "") << name;
  EXPECT_EQ(CheckTraceName(std::string(63, 'a')), "");
  for (const std::string_view name : {"", "-", ".", "a.", ".a", "a..b", "A", "a_b", "-a", "a-",
                                      "a.-b", "a b", "a/b", "ä", "../x"})
    EXPECT_NE(CheckTraceName(name), "") << name;
  EXPECT_NE(CheckTraceName(std::string(64, 'a')), "");
  EXPECT_NE(CheckTraceName(std::string("a\0b", 3)), "");
}

TEST(Names, DnsLabelsAndSubdomains) {
  EXPECT_EQ(CheckDnsLabel("kube-system"), "");
  EXPECT_NE(CheckDnsLabel("a.b"), "");
  EXPECT_NE(CheckDnsLabel(std::string(64, 'a')), "");
  EXPECT_EQ(CheckDnsSubdomain(std::string(253, 'a')), "");
  EXPECT_NE(CheckDnsSubdomain(std::string(254, 'a')), "");
}

TEST(Names, Labels) {
  for (const std::string_view key :
       {"app", "App_1.x", "weft.dev/inject", "a/b", "app.kubernetes.io/name", "0"})
    EXPECT_EQ(CheckLabelKey(key), "") << key;
  for (const std::string_view key : {"", "/", "a/", "/a", "a/b/c", "-a", "a-", "A/b", "a b", "_a"})
    EXPECT_NE(CheckLabelKey(key), "") << key;
  EXPECT_EQ(CheckLabelKey(std::string(253, 'a') + "/" + std::string(63, 'b')), "");
  EXPECT_NE(CheckLabelKey(std::string(254, 'a') + "/b"), "");
  EXPECT_NE(CheckLabelKey("a/" + std::string(64, 'b')), "");
  for (const std::string_view value : {"", "a", "A.b_c-d", "1"})
    EXPECT_EQ(CheckLabelValue(value), "") << value;
  for (const std::string_view value : {"-", "a-", ".a", "a b", "a/b", "ü"})
    EXPECT_NE(CheckLabelValue(value), "") << value;
}

TEST(Names, EventPatterns) {
  for (const std::string_view pattern :
       {"*", "p:*", "p:e", "*:e", "*:*", "p*", "*e", "shop_v2:order_*", "a.b$c-d:e", "p:*x*"})
    EXPECT_EQ(CheckEventPattern(pattern), "") << pattern;
  for (const std::string_view pattern : {"", "p", "p:", ":e", ":", "a:b:c", "p:e?", "p:[ab]",
                                         "p e:*", "p:e\n", "p:\\*", "ä:*", "p:{a,b}"})
    EXPECT_NE(CheckEventPattern(pattern), "") << pattern;
  EXPECT_THAT(CheckEventPattern("shop"), HasSubstr("did you mean \"shop:*\"?"));
  EXPECT_THAT(CheckEventPattern("p:e?"), HasSubstr("only * is special"));
  EXPECT_EQ(CheckEventPattern("p:" + std::string(253, 'e')), "");
  EXPECT_NE(CheckEventPattern("p:" + std::string(254, 'e')), "");
}

TEST(Names, FiltersAreTextOnly) {
  EXPECT_EQ(CheckFilterText("a > 1 &&\n\tb == \"ä€😀\""), "");
  for (const std::string_view text :
       {"", " \n", "\xff", "\xc0\x80", "\xed\xa0\x80", "\xf4\x90\x80\x80", "\xe2\x82", "a\x1b[0m"})
    EXPECT_NE(CheckFilterText(text), "") << Quote(text);
}

TEST(Names, Times) {
  for (const std::string_view text : {"2026-01-02T03:04:05Z", "2026-01-02T03:04:05.123456Z",
                                      "2026-01-02T03:04:05+01:00", "2026-01-02T03:04:05.1-01:00"})
    EXPECT_EQ(CheckTime(text), "") << text;
  for (const std::string_view text :
       {"", "2026-01-02", "2026-01-02T03:04:05", "now", "2026-01-02 03:04:05Z",
        "2026-01-02T03:04:05.Z", "2026-01-02T03:04:05z", "2026-01-02T03:04:05+1:00"})
    EXPECT_NE(CheckTime(text), "") << text;
}

TEST(LogLevels, NamesOfEveryKind) {
  ASSERT_EQ(LogLevelNames().size(), 15u);
  EXPECT_EQ(ParseLogLevel("emerg"), LogLevel::kEmerg);
  EXPECT_EQ(ParseLogLevel("TRACE_INFO"), LogLevel::kInfo);
  EXPECT_EQ(ParseLogLevel("Debug-Line"), LogLevel::kDebugLine);
  EXPECT_EQ(ParseLogLevel("debug"), LogLevel::kDebug);
  EXPECT_EQ(static_cast<int>(LogLevel::kDebug), 14);
  EXPECT_EQ(ParseLogLevel("warn"), std::nullopt);
  EXPECT_EQ(ParseLogLevel(""), std::nullopt);
}

TEST(LogLevels, RulesAdmitTheirLevels) {
  const auto admits = [](const LogLevelRule& rule, int level) {
    const auto bounds = rule.AdmittedLevels();
    return bounds.min <= level && level <= bounds.max;
  };
  EXPECT_TRUE(admits({}, -7) && admits({}, 100));
  const LogLevelRule exactly{.exactly = LogLevel::kInfo};
  EXPECT_TRUE(admits(exactly, 6) && !admits(exactly, 5) && !admits(exactly, 7));
  const LogLevelRule at_least{.at_least = LogLevel::kWarning};
  EXPECT_TRUE(admits(at_least, 0) && admits(at_least, 4) && !admits(at_least, 5));
  for (const LogLevelRange range : {LogLevelRange{LogLevel::kErr, LogLevel::kInfo},
                                    LogLevelRange{LogLevel::kInfo, LogLevel::kErr}}) {
    const LogLevelRule rule{.range = range};
    EXPECT_TRUE(admits(rule, 3) && admits(rule, 6) && !admits(rule, 2) && !admits(rule, 7));
  }
}

TEST(Contexts, KnowsLttngsNamesAndWhereTheyExist) {
  for (const std::string_view name : {"vpid", "vtid", "procname", "cpu_id", "time_ns", "vsgid"}) {
    EXPECT_TRUE(LookUpContext(name).user) << name;
    EXPECT_TRUE(LookUpContext(name).kernel) << name;
  }
  for (const std::string_view name :
       {"ip", "pthread_id", "perf:thread:cpu-cycles", "perf:thread:raw:r13c:x", "$app.prov:name"}) {
    EXPECT_TRUE(LookUpContext(name).user) << name;
    EXPECT_FALSE(LookUpContext(name).kernel) << name;
  }
  for (const std::string_view name : {"pid", "prio", "callstack-user", "perf:cpu:cycles"}) {
    EXPECT_FALSE(LookUpContext(name).user) << name;
    EXPECT_TRUE(LookUpContext(name).kernel) << name;
  }
}

TEST(Contexts, ReportsUnknownNames) {
  const std::pair<std::string_view, std::string_view> cases[] = {
      {"vpdi", "did you mean \"vpid\"?"},
      {"pthread", "did you mean \"pthread_id\"?"},
      {"thread", "unknown context"},
      {"", "unknown context"},
      {"$ctx.vpid", "without $ctx."},
      {"perf:cycles", "perf:thread:COUNTER"},
      {"perf:thread:cycels", "did you mean \"cycles\"?"},
      {"perf:thread:", "unknown perf counter"},
      {"perf:thread:raw:13c:x", "raw:rHEX:NAME"},
      {"perf:thread:raw:rxyz:x", "raw:rHEX:NAME"},
      {"perf:thread:raw:r:x", "raw:rHEX:NAME"},
      {"perf:thread:raw:r11111111111111111:x", "raw:rHEX:NAME"},
      {"$app.x", "$app.PROVIDER:NAME"},
      {"$app.:x", "$app.PROVIDER:NAME"},
      {"$app.a:b c", "$app.PROVIDER:NAME"},
  };
  for (const auto& [name, part] : cases) {
    EXPECT_THAT(CheckContextName(name), HasSubstr(std::string(part))) << name;
    EXPECT_FALSE(LookUpContext(name).any()) << name;
  }
}

// Computes the distance by its recursive definition: slow and obviously right.
std::size_t SlowDistance(std::string_view a, std::string_view b) {
  if (a.empty() || b.empty()) return a.size() + b.size();
  std::size_t best = std::min({SlowDistance(a.substr(1), b) + 1, SlowDistance(a, b.substr(1)) + 1,
                               SlowDistance(a.substr(1), b.substr(1)) + (a[0] == b[0] ? 0 : 1)});
  if (a.size() > 1 && b.size() > 1 && a[0] == b[1] && a[1] == b[0])
    best = std::min(best, SlowDistance(a.substr(2), b.substr(2)) + 1);
  return best;
}

TEST(Nearest, DistanceEqualsTheDefinitionForAllShortStrings) {
  std::vector<std::string> all = {""};
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (all[i].size() == 4) break;
    for (const char c : {'a', 'b', 'c'}) all.push_back(all[i] + c);
  }
  for (const std::string& a : all) {
    for (const std::string& b : all) {
      ASSERT_EQ(EditDistance(a, b), SlowDistance(a, b)) << a << " " << b;
    }
  }
}

TEST(Nearest, ChoosesTheNearestName) {
  const std::vector<std::string_view> names = {"name", "exclude", "logLevel", "filter"};
  EXPECT_EQ(Nearest("nmae", names), "name");
  EXPECT_EQ(Nearest("Name", names), "name");
  EXPECT_EQ(Nearest("loglevel", names), "logLevel");
  EXPECT_EQ(Nearest("log_level", names), "logLevel");
  EXPECT_EQ(Nearest("filters", names), "filter");
  EXPECT_EQ(Nearest("exlude", names), "exclude");
  EXPECT_EQ(Nearest("zzz", names), "");
  EXPECT_EQ(Nearest("", names), "");
  EXPECT_EQ(Nearest(std::string(100, 'n'), names), "");
  EXPECT_EQ(DidYouMean("zzz", names), "; valid here: name, exclude, logLevel, filter");
}

TEST(Diagnostics, AreOnePrintableLine) {
  const Diagnostic full{"t.yaml", 12, 7, "spec.x", "bad"};
  EXPECT_EQ(full.ToString(), "t.yaml:12:7: spec.x: bad");
  EXPECT_EQ((Diagnostic{"t.yaml", 0, 0, "", "bad"}).ToString(), "t.yaml: bad");
  EXPECT_EQ((Diagnostic{"", 0, 0, "--event", "bad"}).ToString(), "--event: bad");
  EXPECT_EQ((Diagnostic{"a\x1b[0m\nb", 1, 1, "", "x\ry"}).ToString(),
            "a\\x1b[0m\\x0ab:1:1: x\\x0dy");
  EXPECT_EQ(Quote("a\"\\\x01\xc3"), "\"a\\\"\\\\\\x01\\xc3\"");
  EXPECT_LT(Quote(std::string(5000, 'x')).size(), 80u);
}

}  // namespace
}  // namespace weft::api
