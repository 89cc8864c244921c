// SPDX-License-Identifier: Apache-2.0
// What kubectl-weft shows of rates, takes as times, and offers for completion.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <CLI/CLI.hpp>

#include "cli/kubectl/completion.h"
#include "cli/kubectl/relay_client.h"
#include "cli/kubectl/time_text.h"
#include "cli/kubectl/top.h"

namespace weft::kubectl {
namespace {

using ::testing::HasSubstr;

constexpr const char* kPod = R"({"pod":"a","total":{"events":9,"bytes":90,"discarded":1,"lost":2},)"
                             R"("events":[1,4],"bytes":[10,40],"discarded":[0,1],"lost":[2,0]})";

TEST(Rates, AreRead) {
  const auto rates = ParseRates(std::string(R"({"seconds":2,"pods":[)") + kPod + "]}");
  ASSERT_TRUE(rates.has_value());
  ASSERT_EQ(rates->size(), 1U);
  EXPECT_EQ(rates->at(0).pod, "a");
  EXPECT_EQ(rates->at(0).total, (RelayCounts{.events = 9, .bytes = 90, .discarded = 1, .lost = 2}));
  EXPECT_EQ(rates->at(0).recently,
            (RelayCounts{.events = 5, .bytes = 50, .discarded = 1, .lost = 2}));
}

TEST(Rates, RefuseForeignAnswers) {
  const std::string pod = kPod;
  const auto without = [&](const std::string& from, const std::string& to) {
    std::string changed = pod;
    return R"({"pods":[)" + changed.replace(changed.find(from), from.size(), to) + "]}";
  };
  for (const std::string& bad :
       {std::string(), std::string("{}"), std::string("[]"), std::string(R"({"pods":{}})"),
        std::string(R"({"pods":[1]})"), without("[1,4]", "[1,-4]"), without("[1,4]", "7"),
        without("\"events\":9", "\"events\":\"9\""), without("\"a\"", "\"\"")})
    EXPECT_EQ(ParseRates(bad).error().code, ErrorCode::kCorrupt) << bad;
}

TEST(Parts, AreReadInTheirOrder) {
  const std::vector<RelayPart> asked = {{"a", 0, 3}, {"b", 5, 2}, {"c", 0, 9}};
  const std::string answer("\3\0\0\0abc\xff\xff\xff\xff\0\0\0\0", 15);
  const auto parts = ParseParts(answer, asked);
  ASSERT_TRUE(parts);
  EXPECT_EQ(*parts, (std::vector<std::optional<std::string>>{"abc", std::nullopt, ""}));
  for (size_t size = 0; size < answer.size(); size++)
    EXPECT_FALSE(ParseParts(std::string_view(answer).substr(0, size), asked)) << size;
  EXPECT_FALSE(ParseParts(answer + "x", asked));
  EXPECT_FALSE(ParseParts(answer, {{"a", 0, 2}, {"b", 5, 2}, {"c", 0, 9}}))
      << "more than asked for";
}

TEST(TopTable, ShowsTheBusiestPodFirst) {
  const std::vector<TraceRates> traces = {
      {.name = "sales",
       .phase = "Recording",
       .pods = {{.pod = "idle\x1b[31m", .total = {.lost = 3}, .recently = {}},
                {.pod = "busy", .total = {.discarded = 4}, .recently = {.events = 12}}}}};
  const std::string table = TopTable(traces, 100);
  EXPECT_THAT(table, HasSubstr("sales   all 2       2.4        0 bytes/s   0.0           0.0      "
                               "4           3\n"));
  EXPECT_LT(table.find("busy"), table.find("idle?[31m"));
  const std::string cut = TopTable(traces, 3);
  EXPECT_THAT(cut, HasSubstr("2 more lines"));
  const kube::Json json = TopJson("shop", traces);
  EXPECT_EQ(json["traces"][0]["eventsPerSecond"], 2.4);
  EXPECT_EQ(json["traces"][0]["pods"][0]["lost"], 3);
}

TEST(TimeText, IsAbsoluteOrAgo) {
  const kube::WallTime now = *kube::ParseTime("2026-01-02T03:04:05Z");
  const auto time = [&](const char* text) {
    const auto parsed = ParseTimeText(text, now);
    return parsed ? *parsed : 0;
  };
  constexpr std::uint64_t kNow = 1767323045000000000;
  EXPECT_EQ(time("2026-01-02T03:04:05Z"), kNow);
  EXPECT_EQ(time("2026-01-02T03:04:05.25Z"), kNow + 250'000'000);
  EXPECT_EQ(time("2026-01-02T04:04:05.000000001+01:00"), kNow + 1);
  EXPECT_EQ(time("2026-01-02T02:34:05-00:30"), kNow);
  EXPECT_EQ(time("5m"), kNow - 300'000'000'000);
  EXPECT_EQ(time("0s"), kNow);
  for (const char* bad : {"", "x", "-5m", "5", "2026-01-02", "2026-01-02T03:04:05", "yesterday",
                          "2026-01-02T03:04:05+1:00", "2026-13-02T03:04:05Z", "Z"})
    EXPECT_EQ(ParseTimeText(bad, now).error().code, ErrorCode::kInvalid) << bad;
}

class CompletionTest : public ::testing::Test {
 protected:
  CompletionTest() {
    app_.add_option("-n,--namespace", text_, "namespace");
    for (const char* name : {"list", "live"}) app_.add_subcommand(name, "What it does");
    CLI::App* live = app_.get_subcommand("live");
    live->fallthrough();
    live->add_option("TRACE", trace_);
    live->add_flag("--json", json_, "print JSON");
    live->add_option("-o,--output", text_, "folder");
  }
  std::string Complete(const std::vector<std::string>& words) {
    return kubectl::Complete(
        app_, words,
        {.traces =
             [this](const auto& flags) {
               flags_ = flags;
               return std::vector<std::string>{"sales", "shop"};
             },
         .namespaces = [](const auto&) { return std::vector<std::string>{"bank"}; }});
  }

  CLI::App app_;
  std::string text_;
  std::string trace_;
  bool json_ = false;
  std::vector<std::string> flags_;
};

TEST_F(CompletionTest, OffersCommandsFlagsAndNames) {
  EXPECT_EQ(Complete({"li"}), "list\tWhat it does\nlive\tWhat it does\n:4\n");
  EXPECT_EQ(Complete({"live", "--js"}), "--json\tprint JSON\n:4\n");
  EXPECT_EQ(Complete({"live", "--name"}), "--namespace\tnamespace\n:4\n");
  EXPECT_EQ(Complete({"live", ""}), "sales\nshop\n:4\n");
  EXPECT_EQ(Complete({"live", "--json", "sa"}), "sales\n:4\n");
  EXPECT_EQ(Complete({"live", "sales", ""}), ":4\n");
  EXPECT_EQ(Complete({"list", ""}), ":4\n");
  EXPECT_EQ(Complete({"unknown", "--no", ""}), "list\tWhat it does\nlive\tWhat it does\n:4\n");
  EXPECT_EQ(Complete({}), "list\tWhat it does\nlive\tWhat it does\n:4\n");
}

TEST_F(CompletionTest, KnowsValuesOfFlags) {
  EXPECT_EQ(Complete({"-n", ""}), "bank\n:4\n");
  EXPECT_EQ(Complete({"live", "--namespace=b"}), "bank\n:4\n");
  EXPECT_EQ(Complete({"live", "-o", ""}), ":0\n");
  EXPECT_EQ(Complete({"live", "-n", "bank", "--json", "s"}), "sales\nshop\n:4\n");
  EXPECT_EQ(flags_, (std::vector<std::string>{"-n", "bank"}));
  EXPECT_EQ(Complete({"--namespace=bank", "live", "x"}), ":4\n");
  EXPECT_EQ(flags_, (std::vector<std::string>{"--namespace=bank"}));
}

}  // namespace
}  // namespace weft::kubectl
