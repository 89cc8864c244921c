/* SPDX-License-Identifier: Apache-2.0 */
#define LTTNG_UST_TRACEPOINT_DEFINE
#define LTTNG_UST_TRACEPOINT_PROBE_DYNAMIC_LINKAGE
#include "./every_ip_tp.h"
