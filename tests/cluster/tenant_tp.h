/* SPDX-License-Identifier: Apache-2.0 */
/* Tracepoints of tenant.c, written as LTTng-UST's documentation has it. */
#undef TRACEPOINT_PROVIDER
#define TRACEPOINT_PROVIDER tenant

#undef TRACEPOINT_INCLUDE
#define TRACEPOINT_INCLUDE "tests/cluster/tenant_tp.h"

#if !defined(WEFT_TESTS_CLUSTER_TENANT_TP_H_) || defined(TRACEPOINT_HEADER_MULTI_READ)
#define WEFT_TESTS_CLUSTER_TENANT_TP_H_

#include <lttng/tracepoint.h>
#include <stdint.h>

TRACEPOINT_EVENT(tenant, work, TP_ARGS(int, thread, uint64_t, number),
                 TP_FIELDS(ctf_integer(int, thread, thread) ctf_integer(uint64_t, number, number)))

TRACEPOINT_EVENT(tenant, idle, TP_ARGS(const char*, why), TP_FIELDS(ctf_string(why, why)))

#endif

#include <lttng/tracepoint-event.h>
