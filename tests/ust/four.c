/* SPDX-License-Identifier: Apache-2.0 */
/* See four_tp.h. */
#define TRACEPOINT_CREATE_PROBES
#define TRACEPOINT_DEFINE
#include "./four_tp.h"

void call_site(int32_t i, uint64_t u, double d, void* p);
void call_site(int32_t i, uint64_t u, double d, void* p) { tracepoint(four, fields, i, u, d, p); }
