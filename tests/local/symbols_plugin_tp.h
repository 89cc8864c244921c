/* SPDX-License-Identifier: Apache-2.0 */
/* One event, and the function it is in. Read several times by the tracepoint macros. */
#undef TRACEPOINT_PROVIDER
#define TRACEPOINT_PROVIDER plugin

#undef TRACEPOINT_INCLUDE
#define TRACEPOINT_INCLUDE "tests/local/symbols_plugin_tp.h"

#if !defined(WEFT_TESTS_LOCAL_SYMBOLS_PLUGIN_TP_H_) || defined(TRACEPOINT_HEADER_MULTI_READ)
#define WEFT_TESTS_LOCAL_SYMBOLS_PLUGIN_TP_H_

#include <stdint.h>
#include <weft/tracepoint.h>

/* clang-format off */
TRACEPOINT_EVENT(plugin, here,
  TP_ARGS(const char *, where),
  TP_FIELDS(
    ctf_string(where, where)
  )
)
/* clang-format on */

#endif

#include <weft/tracepoint-event.h>
