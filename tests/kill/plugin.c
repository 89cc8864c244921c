// SPDX-License-Identifier: Apache-2.0
// A plugin of the worker's: it traces on a lane of its caller's.
#define LTTNG_UST_TRACEPOINT_DEFINE
#define LTTNG_UST_TRACEPOINT_CREATE_PROBES
#include "tests/kill/plugin_provider.h"

__attribute__((visibility("default"))) void stress_plugin(struct stress_books* books,
                                                          uint64_t lane) {
  for (int i = 0; i < 10; ++i) {
    const uint64_t n = books->lanes[lane].begun;
    books->lanes[lane].begun = n + 1;
    lttng_ust_tracepoint(stress, plugin, lane, n, stress_check(lane, n));
    books->lanes[lane].ended = n + 1;
  }
}
