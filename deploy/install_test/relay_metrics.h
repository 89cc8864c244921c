// SPDX-License-Identifier: Apache-2.0
// Asks a relay's /metrics how many events of a Trace it has stored. Pure functions and one blocking
// request; any thread may call them.
#ifndef WEFT_DEPLOY_INSTALL_TEST_RELAY_METRICS_H_
#define WEFT_DEPLOY_INSTALL_TEST_RELAY_METRICS_H_

#include <cstdint>
#include <string>
#include <string_view>

#include "lib/base/result.h"

namespace weft::install_test {

struct Relay {
  std::string host;
  std::string port;  // of its health server
};

// The body of the relay's answer. Errors: the name is unknown, no connection within a few seconds,
// a status other than 200, or an answer above 4 MiB.
Result<std::string> ReadMetrics(const Relay& relay);

// The value of weft_events_delivered_total for the Trace; 0 where the text has no such line.
uint64_t StoredEvents(std::string_view metrics, std::string_view name_space,
                      std::string_view trace);

}  // namespace weft::install_test

#endif  // WEFT_DEPLOY_INSTALL_TEST_RELAY_METRICS_H_
