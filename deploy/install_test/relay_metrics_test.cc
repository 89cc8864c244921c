// SPDX-License-Identifier: Apache-2.0
// The count of a Trace in the text of /metrics.
#include "deploy/install_test/relay_metrics.h"

#include <gtest/gtest.h>

namespace weft::install_test {
namespace {

TEST(StoredEvents, AreThoseOfTheTraceAlone) {
  const std::string_view text =
      "# TYPE weft_events_delivered_total counter\n"
      "weft_events_delivered_total{namespace=\"a\",trace=\"t\"} 7\n"
      "weft_events_delivered_total{namespace=\"b\",trace=\"t\"} 1000\n"
      "weft_relay_packets_total{namespace=\"a\",trace=\"u\"} 9\n";
  EXPECT_EQ(StoredEvents(text, "a", "t"), 7u);
  EXPECT_EQ(StoredEvents(text, "b", "t"), 1000u);
  EXPECT_EQ(StoredEvents(text, "a", "u"), 0u);
  EXPECT_EQ(StoredEvents("", "a", "t"), 0u);
}

}  // namespace
}  // namespace weft::install_test
