/* SPDX-License-Identifier: Apache-2.0 */
#define TRACEPOINT_DEFINE
#define TRACEPOINT_PROBE_DYNAMIC_LINKAGE
#include "./lone_tp.h"
