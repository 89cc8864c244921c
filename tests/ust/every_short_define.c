/* SPDX-License-Identifier: Apache-2.0 */
/* The tracepoints of every_short, without their probes. */
#define TRACEPOINT_DEFINE
#ifdef EVERY_SHORT_IS_LOADED_LATER
#define TRACEPOINT_PROBE_DYNAMIC_LINKAGE
#endif
#include "./every_short_tp.h"
