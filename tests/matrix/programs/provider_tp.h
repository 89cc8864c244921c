/* SPDX-License-Identifier: Apache-2.0 */
/* Events of the provider that comes and goes. lint: not self-contained: included many times, by its
 * bare name. */
#undef TRACEPOINT_PROVIDER
#define TRACEPOINT_PROVIDER matrix
#undef TRACEPOINT_INCLUDE
#define TRACEPOINT_INCLUDE "provider_tp.h"

#if !defined(PROVIDER_TP_H) || defined(TRACEPOINT_HEADER_MULTI_READ)
#define PROVIDER_TP_H
#include <weft/tracepoint.h>

TRACEPOINT_EVENT(matrix, plugin, TP_ARGS(int, number, const char*, text),
                 TP_FIELDS(ctf_integer(int, number, number) ctf_string(text, text)))

/* If calls may find no provider, only the probe knows how often it ran, so it counts. */
TRACEPOINT_EVENT(matrix, provided, TP_ARGS(unsigned long*, emitted, const char*, text),
                 TP_FIELDS(ctf_integer(unsigned long, number,
                                       __atomic_add_fetch(emitted, 1, __ATOMIC_RELAXED))
                               ctf_string(text, text)))

#endif
#include <weft/tracepoint-event.h>
