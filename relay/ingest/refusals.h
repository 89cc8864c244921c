// SPDX-License-Identifier: Apache-2.0
// Counts and logs the connections and sessions of nodes that the relay ended. Used by the server's
// thread.
#ifndef WEFT_RELAY_INGEST_REFUSALS_H_
#define WEFT_RELAY_INGEST_REFUSALS_H_

#include <cstdio>
#include <string>

#include "lib/base/log_rate.h"
#include "lib/base/log_text.h"
#include "lib/metrics/registry.h"
#include "relay/ingest/limits.h"

namespace weft::ingest {

inline constexpr const char* kRefusalReasons[] = {
    "no_ticket",      "wrong_ticket", "expired_ticket", "no_session", "unknown_sessions",
    "no_certificate", "tls",          "protocol",       "timeout",    "slow",
    "limit",          "storage",      "replaced"};

class Refusals {
 public:
  // All reasons are on the page from the start, so that the first refusal is an increase.
  explicit Refusals(metrics::Registry& metrics) : metrics_(metrics) {
    for (const char* reason : kRefusalReasons) {
      metrics_.Add(metrics::Id::kRelayRefusedSessions, {reason}, 0);
    }
  }

  // `who` and `why` may have foreign text in them. `reason`: of weft_relay_refused_sessions_total.
  void Note(const char* reason, const std::string& who, const std::string& why) {
    metrics_.Add(metrics::Id::kRelayRefusedSessions, {reason});
    const auto left_out = lines_.Take("", LogRate::Clock::now());
    if (!left_out) return;
    std::fprintf(stderr, "weft-relay: refused (%s): %s: %s%s\n", reason, ForLog(who).c_str(),
                 ForLog(why).c_str(), left_out->c_str());
  }

 private:
  metrics::Registry& metrics_;
  LogRate lines_{kRefusalLines, kRefusalLinesAtOnce, /*most=*/1};
};

}  // namespace weft::ingest

#endif  // WEFT_RELAY_INGEST_REFUSALS_H_
