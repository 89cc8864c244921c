// SPDX-License-Identifier: Apache-2.0
// The table of metric families obeys its rules, docs/metrics.md is made from it, and a registry's
// page shows what was counted.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <set>

#include "lib/metrics/page.h"
#include "lib/metrics/registry.h"

namespace weft::metrics {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

TEST(Families, OnePartExportsEachName) {
  std::set<std::string_view> names;
  for (const Family& family : kFamilies)
    EXPECT_TRUE(names.insert(family.name).second) << family.name;
}

TEST(Families, NamesFollowTheConventions) {
  for (const Family& family : kFamilies) {
    EXPECT_TRUE(family.name.starts_with("weft_")) << family.name;
    EXPECT_EQ(family.name.ends_with("_total"), family.kind == Kind::kCounter) << family.name;
    EXPECT_TRUE(family.help.ends_with(".")) << family.name;
    for (std::size_t i = CountLabels(family); i < kMaxLabels; ++i)
      EXPECT_TRUE(family.labels[i].empty()) << family.name;
  }
}

TEST(Families, OnlyTheAgentExportsCountsOfChannels) {
  for (const Family& family : kFamilies) {
    if (family.count.empty()) continue;
    EXPECT_EQ(family.part, Part::kAgent) << family.name;
    EXPECT_GE(CountLabels(family), 2U) << family.name;
  }
}

TEST(Page, HasTheTablesThatTheFamiliesGive) {
  std::ifstream in(WEFT_SOURCE_DIR "/docs/metrics.md", std::ios::binary);
  const std::string page{std::istreambuf_iterator<char>(in), {}};
  EXPECT_EQ(WithTables(page), page)
      << "docs/metrics.md is stale: run build/release/lib/metrics/weft-metrics-gen .";
}

TEST(Registry, ShowsWhatWasCountedByLabels) {
  Registry registry(Part::kRelay);
  EXPECT_THAT(registry.Text(), HasSubstr("\nweft_relay_sessions 0\n"));
  EXPECT_THAT(registry.Text(), HasSubstr("\nweft_relay_api_bytes_total 0\n"));
  EXPECT_THAT(registry.Text(), Not(HasSubstr("weft_events_delivered_total")));
  registry.Add(Id::kEventsDelivered, {"shop", "t"}, 5);
  registry.Add(Id::kEventsDelivered, {"shop", "t"}, 2);
  registry.Add(Id::kRelaySessions, {}, 2);
  registry.Add(Id::kRelaySessions, {}, -1);
  EXPECT_THAT(registry.Text(),
              HasSubstr("weft_events_delivered_total{namespace=\"shop\",trace=\"t\"} 7\n"));
  EXPECT_THAT(registry.Text(), HasSubstr("\nweft_relay_sessions 1\n"));
}

TEST(Registry, GaugesAreSet) {
  Registry registry(Part::kController);
  registry.Set(Id::kControllerTraces, {"Failed"}, 3);
  registry.Set(Id::kControllerTraces, {"Failed"}, 1);
  EXPECT_THAT(registry.Text(), HasSubstr("# TYPE weft_controller_traces gauge"));
  EXPECT_THAT(registry.Text(), HasSubstr("weft_controller_traces{phase=\"Failed\"} 1\n"));
}

}  // namespace
}  // namespace weft::metrics
