/* SPDX-License-Identifier: Apache-2.0 */
/* The probes of every_short; its tracepoints are in every_short_define.c. */
#define TRACEPOINT_CREATE_PROBES
#include "./every_short_tp.h"
