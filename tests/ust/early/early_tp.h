/* SPDX-License-Identifier: Apache-2.0 */
/* Events of code that runs before main and after it; EARLY names the provider. */
#undef TRACEPOINT_PROVIDER
#define TRACEPOINT_PROVIDER EARLY

#undef TRACEPOINT_INCLUDE
#define TRACEPOINT_INCLUDE "./early/early_tp.h"

#if !defined(WEFT_TESTS_UST_EARLY_TP_H_) || defined(TRACEPOINT_HEADER_MULTI_READ)
#define WEFT_TESTS_UST_EARLY_TP_H_

#include <lttng/tracepoint.h>

#ifndef EARLY
#define EARLY early
#endif

TRACEPOINT_EVENT_CLASS(EARLY, at, TP_ARGS(const char*, place), TP_FIELDS(ctf_string(place, place)))
TRACEPOINT_EVENT_INSTANCE(EARLY, at, constructor, TP_ARGS(const char*, place))
TRACEPOINT_EVENT_INSTANCE(EARLY, at, destructor, TP_ARGS(const char*, place))
TRACEPOINT_EVENT_INSTANCE(EARLY, at, made, TP_ARGS(const char*, place))
TRACEPOINT_EVENT_INSTANCE(EARLY, at, gone, TP_ARGS(const char*, place))

#endif /* WEFT_TESTS_UST_EARLY_TP_H_ */

#include <lttng/tracepoint-event.h>
