/* SPDX-License-Identifier: Apache-2.0 */
/* Tracepoints and probes of every_long, in one file. It is built as C and as C++. */
#define LTTNG_UST_TRACEPOINT_CREATE_PROBES
#define LTTNG_UST_TRACEPOINT_DEFINE
#include "./every_long_tp.h"
