/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tracepoints for C (gnu99, C11 and later) and C++ (C++11 and later), source-compatible with
 * LTTng-UST 2.13: a program that uses them needs no library to be linked with or to run; in a
 * process with libweft.so (preloaded) they can be turned on.
 *
 * A provider's header, say shop_tp.h:
 *
 *     #undef TRACEPOINT_PROVIDER
 *     #define TRACEPOINT_PROVIDER shop
 *     #undef TRACEPOINT_INCLUDE
 *     #define TRACEPOINT_INCLUDE "shop_tp.h"
 *     #if !defined(SHOP_TP_H_) || defined(TRACEPOINT_HEADER_MULTI_READ)
 *     #define SHOP_TP_H_
 *     #include <weft/tracepoint.h>
 *     TRACEPOINT_EVENT(shop, order_placed, TP_ARGS(int, id, double, amount),
 *                      TP_FIELDS(ctf_integer(int, id, id) ctf_float(double, amount, amount)))
 *     #endif
 *     #include <weft/tracepoint-event.h>
 *
 * One source file defines TRACEPOINT_CREATE_PROBES before it includes that header and so has the
 * probes; one per program or shared library defines TRACEPOINT_DEFINE (it may be the same file) and
 * so has the tracepoints; others just say tracepoint(shop, order_placed, 7, 9.90). With
 * TRACEPOINT_PROBE_DYNAMIC_LINKAGE beside TRACEPOINT_DEFINE the probes may come later, by dlopen.
 *
 * An event that is off costs two loads and a branch; its arguments are not evaluated. Calls are
 * safe in every thread and in signal handlers. All macros have LTTng's two spellings,
 * TRACEPOINT_EVENT and LTTNG_UST_TRACEPOINT_EVENT, ctf_integer and lttng_ust_field_integer, and so
 * on: the short ones are left out if LTTNG_UST_COMPAT_API_VERSION is defined as 1 or more.
 */
#pragma GCC system_header
#ifndef WEFT_TRACEPOINT_H_
#define WEFT_TRACEPOINT_H_

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#if defined(__cplusplus) && __cplusplus < 201103L
#error "weft: tracepoints in C++ need C++11"
#endif

#include "detail/args.h"
#include "detail/callsite.h"
#include "detail/compiler.h"
#include "detail/fields.h"
#include "detail/loglevels.h"
#include "detail/probes.h"
#include "detail/short_names.h"

/* tracepoint(provider, event, arguments ...). Provider and event may be macros: they are expanded
 * before their names are joined. */
#define lttng_ust_tracepoint(provider, event, ...)                      \
  do {                                                                  \
    if (WEFT_TRACEPOINT_ENABLED(WEFT_TRACEPOINT_OF(provider, event))) { \
      WEFT_EVENT_SYMBOL(weft_call_, provider, event)(__VA_ARGS__);      \
    }                                                                   \
    WEFT_NOTHING(event, ##__VA_ARGS__)                                  \
  } while (0)

/* clang -Wpedantic accepts a macro call without variable arguments if the macro has ", ##". */
#define WEFT_NOTHING(...)

/* Would the event be recorded, or a probe be called? Use it if the arguments are expensive to
 * compute, and call do_tracepoint() after it. */
#define lttng_ust_tracepoint_enabled(provider, event)              \
  (WEFT_TRACEPOINT_ENABLED(WEFT_TRACEPOINT_OF(provider, event)) && \
   weft_tracepoint_ask(&WEFT_TRACEPOINT_OF(provider, event)))

/* Calls the tracepoint without checking whether it is on. */
#define lttng_ust_do_tracepoint(provider, event, ...) \
  WEFT_EVENT_SYMBOL(weft_call_, provider, event)(__VA_ARGS__) WEFT_NOTHING(event, ##__VA_ARGS__)

#define WEFT_TRACEPOINT_OF(provider, event) WEFT_EVENT_SYMBOL(weft_tracepoint_, provider, event)

/* Takes 0 to 10 pairs of a type and a name. */
#define LTTNG_UST_TP_ARGS(...) (__VA_ARGS__)

/*
 * The macros that a provider's header may use. The header is read several times when probes are
 * created (tracepoint-event.h); WEFT_PASS says what each macro stands for this time:
 *   calls       tracepoints are declared (and defined with TRACEPOINT_DEFINE)
 *   enums       enumerations, which fields may name before they are defined
 *   classes     event classes (encoders), which instances may name before they are defined
 *   probes      probes and events
 *   properties  log levels and URIs
 *   describe    descriptions
 */
#define LTTNG_UST_TRACEPOINT_EVENT(provider, event, args, fields) \
  WEFT_JOIN(WEFT_EVENT_, WEFT_PASS)(provider, event, args, fields)
#define LTTNG_UST_TRACEPOINT_EVENT_CLASS(provider, name, args, fields) \
  WEFT_JOIN(WEFT_CLASS_, WEFT_PASS)(provider, name, args, fields)
#define LTTNG_UST_TRACEPOINT_EVENT_INSTANCE(class_provider, class_name, provider, event, args) \
  WEFT_JOIN(WEFT_INSTANCE_, WEFT_PASS)(class_provider, class_name, provider, event, args)
#define LTTNG_UST_TRACEPOINT_ENUM(provider, name, values) \
  WEFT_JOIN(WEFT_ENUM_, WEFT_PASS)(provider, name, values)
#define LTTNG_UST_TRACEPOINT_LOGLEVEL(provider, event, level) \
  WEFT_JOIN(WEFT_LOGLEVEL_, WEFT_PASS)(provider, event, level)
#define LTTNG_UST_TRACEPOINT_MODEL_EMF_URI(provider, event, uri) \
  WEFT_JOIN(WEFT_URI_, WEFT_PASS)(provider, event, uri)

#define WEFT_PASS calls
#define WEFT_EVENT_calls(provider, event, args, fields) \
  WEFT_DECLARE_TRACEPOINT(provider, event, args)        \
  WEFT_DEFINE_IF_WANTED(provider, event, args)
#define WEFT_CLASS_calls(provider, name, args, fields)
#define WEFT_INSTANCE_calls(class_provider, class_name, provider, event, args) \
  WEFT_DECLARE_TRACEPOINT(provider, event, args)                               \
  WEFT_DEFINE_IF_WANTED(provider, event, args)
#define WEFT_ENUM_calls(provider, name, values)
#define WEFT_LOGLEVEL_calls(provider, event, level)
#define WEFT_URI_calls(provider, event, uri)

#endif /* WEFT_TRACEPOINT_H_ */

/*
 * A file may define before each inclusion:
 *   TRACEPOINT_DEFINE                   the tracepoints of the headers that follow are defined here
 *   TRACEPOINT_PROBE_DYNAMIC_LINKAGE    and need no provider at link time
 *   LTTNG_UST_TRACEPOINT_HIDDEN_DEFINITION           tracepoints are of this object only
 *   LTTNG_UST_TRACEPOINT_PROVIDER_HIDDEN_DEFINITION  the provider's symbol is of this object only
 */
#if LTTNG_UST_COMPAT_API(0)
#if defined(TRACEPOINT_DEFINE) && !defined(LTTNG_UST_TRACEPOINT_DEFINE)
#define LTTNG_UST_TRACEPOINT_DEFINE
#endif
#if defined(TRACEPOINT_PROBE_DYNAMIC_LINKAGE) && \
    !defined(LTTNG_UST_TRACEPOINT_PROBE_DYNAMIC_LINKAGE)
#define LTTNG_UST_TRACEPOINT_PROBE_DYNAMIC_LINKAGE
#endif
#endif

#undef WEFT_DEFINE_IF_WANTED
#ifdef LTTNG_UST_TRACEPOINT_DEFINE
#define WEFT_DEFINE_IF_WANTED(provider, event, args) WEFT_DEFINE_TRACEPOINT(provider, event, args)
#else
#define WEFT_DEFINE_IF_WANTED(provider, event, args)
#endif

#undef WEFT_TRACEPOINT_VISIBILITY
#ifdef LTTNG_UST_TRACEPOINT_HIDDEN_DEFINITION
#define WEFT_TRACEPOINT_VISIBILITY __attribute__((visibility("hidden")))
#else
#define WEFT_TRACEPOINT_VISIBILITY __attribute__((visibility("default")))
#endif

#undef WEFT_PROVIDER_VISIBILITY
#ifdef LTTNG_UST_TRACEPOINT_PROVIDER_HIDDEN_DEFINITION
#define WEFT_PROVIDER_VISIBILITY __attribute__((visibility("hidden")))
#else
#define WEFT_PROVIDER_VISIBILITY __attribute__((visibility("default")))
#endif

/* Takes the provider out of a static library, or says at link time that it is missing. */
#undef WEFT_PROVIDER_REFERENCE
#ifdef LTTNG_UST_TRACEPOINT_PROBE_DYNAMIC_LINKAGE
#define WEFT_PROVIDER_REFERENCE(provider, event)
#else
#define WEFT_PROVIDER_REFERENCE(provider, event)                              \
  WEFT_EXTERN_C int weft_provider_##provider WEFT_PROVIDER_VISIBILITY;        \
  static int* weft_provider_of_##provider##___##event __attribute__((used)) = \
      &weft_provider_##provider;
#endif
