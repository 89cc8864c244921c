// SPDX-License-Identifier: Apache-2.0
// Whatever the network does, and whichever side dies: every event is stored once, in order. A
// failing seed is in the message; WEFT_SEED=N runs that one alone.
#include <gtest/gtest.h>

#include <cstdlib>

#include "lib/stream/testing/simulation.h"

namespace weft::stream::testing {
namespace {

struct Case {
  const char* name;
  Simulation::Network network;
};

class Seeds : public ::testing::TestWithParam<Case> {};

TEST_P(Seeds, EveryEventIsStoredOnce) {
  const char* one = std::getenv("WEFT_SEED");
  const char* long_form = std::getenv("WEFT_LONG");
  const uint64_t first = one != nullptr ? std::strtoull(one, nullptr, 10) : 1;
  const bool is_long = long_form != nullptr && std::string(long_form) == "1";
#ifdef WEFT_SANITIZED
  constexpr uint64_t kShort = 70, kLong = 700;
#else
  constexpr uint64_t kShort = 200, kLong = 5000;
#endif
  const uint64_t count = one != nullptr ? 1 : is_long ? kLong : kShort;
  uint64_t faults = 0;
  for (uint64_t seed = first; seed < first + count; seed++) {
    Simulation simulation(seed, GetParam().network);
    ASSERT_TRUE(simulation.Run(1500)) << "seed " << seed << " does not end";
    ASSERT_EQ(simulation.Check(), "") << "seed " << seed;
    faults += simulation.connections - 1 + simulation.node_deaths + simulation.relay_deaths +
              simulation.duplicates;
  }
  const bool bad = GetParam().network.disconnect > 0 || GetParam().network.loss > 0;
  EXPECT_EQ(faults > count, bad);
}

INSTANTIATE_TEST_SUITE_P(
    Networks, Seeds,
    ::testing::Values(Case{"Good", {}},
                      Case{"Connections",
                           {.disconnect = 0.01, .relay_death = 0.003, .node_death = 0.003}},
                      Case{"Datagrams", {.datagrams = true, .loss = 0.2, .again = 0.2}},
                      Case{"DatagramsAndDeaths",
                           {.datagrams = true,
                            .loss = 0.1,
                            .again = 0.3,
                            .disconnect = 0.01,
                            .relay_death = 0.003,
                            .node_death = 0.003}}),
    [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace weft::stream::testing
