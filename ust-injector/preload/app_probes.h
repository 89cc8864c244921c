// SPDX-License-Identifier: Apache-2.0
// Probes that the application attaches to tracepoints itself. See lib/abi/tracepoint.h.
#ifndef WEFT_UST_INJECTOR_PRELOAD_APP_PROBES_H_
#define WEFT_UST_INJECTOR_PRELOAD_APP_PROBES_H_

#include <stdint.h>

// The enable word of a tracepoint with application probes: always on.
extern const uint32_t weft_app_probes_on __attribute__((visibility("hidden")));

#endif  // WEFT_UST_INJECTOR_PRELOAD_APP_PROBES_H_
