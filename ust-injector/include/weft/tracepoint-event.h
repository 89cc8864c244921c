/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Stands at the end of a provider's header, outside its include guard. In the one source file that
 * defines TRACEPOINT_CREATE_PROBES it makes the probes: it reads TRACEPOINT_INCLUDE again, three
 * times for probes and twice for descriptions. Elsewhere it does nothing.
 *
 * TP_IP_PARAM may name the argument to be recorded as the event's address.
 */
#pragma GCC system_header
#include "tracepoint.h"

#if LTTNG_UST_COMPAT_API(0) && defined(TRACEPOINT_CREATE_PROBES) && \
    !defined(LTTNG_UST_TRACEPOINT_CREATE_PROBES)
#define LTTNG_UST_TRACEPOINT_CREATE_PROBES
#endif

#ifdef LTTNG_UST_TRACEPOINT_CREATE_PROBES

/* The header that is read again ends by including this file. */
#undef LTTNG_UST_TRACEPOINT_CREATE_PROBES
#define LTTNG_UST_TRACEPOINT_HEADER_MULTI_READ
#if LTTNG_UST_COMPAT_API(0)
#undef TRACEPOINT_CREATE_PROBES
#define TRACEPOINT_HEADER_MULTI_READ
#if defined(TRACEPOINT_INCLUDE) && !defined(LTTNG_UST_TRACEPOINT_INCLUDE)
#define LTTNG_UST_TRACEPOINT_INCLUDE TRACEPOINT_INCLUDE
#define WEFT_UNDEF_INCLUDE
#endif
#if defined(TRACEPOINT_PROVIDER) && !defined(LTTNG_UST_TRACEPOINT_PROVIDER)
#define LTTNG_UST_TRACEPOINT_PROVIDER TRACEPOINT_PROVIDER
#endif
#if defined(TP_IP_PARAM) && !defined(LTTNG_UST_TP_IP_PARAM)
#define LTTNG_UST_TP_IP_PARAM TP_IP_PARAM
#endif
#endif

#include "detail/provider.h"

#undef WEFT_IP
#ifdef LTTNG_UST_TP_IP_PARAM
#define WEFT_IP ((const void*)(LTTNG_UST_TP_IP_PARAM))
#else
#define WEFT_IP __builtin_return_address(0)
#endif

#define WEFT_PROVIDER_SYMBOL(prefix) WEFT_JOIN(prefix, LTTNG_UST_TRACEPOINT_PROVIDER)

typedef int WEFT_PROVIDER_SYMBOL(weft_the_provider_is_);
WEFT_BEGIN_C
extern int WEFT_PROVIDER_SYMBOL(weft_provider_) WEFT_PROVIDER_VISIBILITY;
int WEFT_PROVIDER_SYMBOL(weft_provider_) = 0; /* NOLINT(misc-definitions-in-headers): once */
WEFT_END_C

#undef WEFT_PASS
#define WEFT_PASS enums
#include LTTNG_UST_TRACEPOINT_INCLUDE
#undef WEFT_PASS
#define WEFT_PASS classes
#include LTTNG_UST_TRACEPOINT_INCLUDE
#undef WEFT_PASS
#define WEFT_PASS probes
#include LTTNG_UST_TRACEPOINT_INCLUDE

static void __attribute__((used, noinline, cold, no_instrument_function)) WEFT_PROVIDER_SYMBOL(
    weft_describe_)(void) {
#undef WEFT_PASS
#define WEFT_PASS properties
#include LTTNG_UST_TRACEPOINT_INCLUDE
#undef WEFT_PASS
#define WEFT_PASS describe
#include LTTNG_UST_TRACEPOINT_INCLUDE
}

#undef WEFT_PASS
#define WEFT_PASS calls

#define LTTNG_UST_TRACEPOINT_CREATE_PROBES
#undef LTTNG_UST_TRACEPOINT_HEADER_MULTI_READ
#undef LTTNG_UST_TRACEPOINT_INCLUDE
#if LTTNG_UST_COMPAT_API(0)
#undef TRACEPOINT_HEADER_MULTI_READ
#undef TRACEPOINT_INCLUDE
#endif

#endif /* LTTNG_UST_TRACEPOINT_CREATE_PROBES */
