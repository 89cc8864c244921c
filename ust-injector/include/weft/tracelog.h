/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tracelog(level, format, ...) prints into the trace like printf, with a log level, source file,
 * line and function, as the event lttng_ust_tracelog:LEVEL. `level` is one of
 * LTTNG_UST_TRACEPOINT_LOGLEVEL_* or, in version 0 of the API, TRACE_*. In all else it is like
 * tracef().
 */
#pragma GCC system_header
#ifndef WEFT_TRACELOG_H_
#define WEFT_TRACELOG_H_

#include "detail/message.h"
#include "detail/shared_event.h"
#include "tracepoint.h"

#define WEFT_TRACELOG_ARGS \
  (const char*, file, int, line, const char*, func, const char*, msg, unsigned int, len, void*, ip)

#define WEFT_TRACELOG_LEVELS(do_level)                                                           \
  do_level(LTTNG_UST_TRACEPOINT_LOGLEVEL_EMERG) do_level(LTTNG_UST_TRACEPOINT_LOGLEVEL_ALERT)    \
      do_level(LTTNG_UST_TRACEPOINT_LOGLEVEL_CRIT) do_level(LTTNG_UST_TRACEPOINT_LOGLEVEL_ERR)   \
          do_level(LTTNG_UST_TRACEPOINT_LOGLEVEL_WARNING)                                        \
              do_level(LTTNG_UST_TRACEPOINT_LOGLEVEL_NOTICE)                                     \
                  do_level(LTTNG_UST_TRACEPOINT_LOGLEVEL_INFO)                                   \
                      do_level(LTTNG_UST_TRACEPOINT_LOGLEVEL_DEBUG_SYSTEM)                       \
                          do_level(LTTNG_UST_TRACEPOINT_LOGLEVEL_DEBUG_PROGRAM)                  \
                              do_level(LTTNG_UST_TRACEPOINT_LOGLEVEL_DEBUG_PROCESS)              \
                                  do_level(LTTNG_UST_TRACEPOINT_LOGLEVEL_DEBUG_MODULE)           \
                                      do_level(LTTNG_UST_TRACEPOINT_LOGLEVEL_DEBUG_UNIT)         \
                                          do_level(LTTNG_UST_TRACEPOINT_LOGLEVEL_DEBUG_FUNCTION) \
                                              do_level(LTTNG_UST_TRACEPOINT_LOGLEVEL_DEBUG_LINE) \
                                                  do_level(LTTNG_UST_TRACEPOINT_LOGLEVEL_DEBUG)

#pragma push_macro("WEFT_TRACEPOINT_VISIBILITY")
#pragma push_macro("WEFT_DESC_SECTION")
#pragma push_macro("WEFT_DESC_END")
#pragma push_macro("WEFT_IP")
#undef WEFT_TRACEPOINT_VISIBILITY
#undef WEFT_DESC_SECTION
#undef WEFT_DESC_END
#undef WEFT_IP
#define WEFT_TRACEPOINT_VISIBILITY __attribute__((weak, visibility("hidden")))
#define WEFT_DESC_SECTION WEFT_DESC_OF_GROUP("weft_tracelog")
#define WEFT_DESC_END WEFT_DESC_END_OF_GROUP
#define WEFT_IP ip

typedef int weft_the_provider_is_lttng_ust_tracelog;
WEFT_DEFINE_CLASS(lttng_ust_tracelog, tlclass, WEFT_TRACELOG_ARGS,
                  lttng_ust_field_integer(int, line, line) lttng_ust_field_string(file, file)
                      lttng_ust_field_string(func, func)
                          lttng_ust_field_sequence_text(char, msg, msg, unsigned int, len)
                              lttng_ust_field_unused(ip))

#define WEFT_TRACELOG_EVENT(level)                                                              \
  WEFT_SHARED_EVENT(lttng_ust_tracelog, tlclass, lttng_ust_tracelog, level, WEFT_TRACELOG_ARGS) \
  static __attribute__((noinline, unused, format(printf, 5, 0))) void weft_tracelog_at_##level( \
      void* ip, const char* file, int line, const char* func, const char* format,               \
      va_list arguments) {                                                                      \
    struct weft_message m;                                                                      \
    if (weft_message_make(&m, format, arguments)) {                                             \
      weft_call_lttng_ust_tracelog___##level(file, line, func, m.text, m.size, ip);             \
    }                                                                                           \
    weft_message_free(&m);                                                                      \
  }                                                                                             \
  static __attribute__((noinline, unused, format(printf, 4, 5))) void weft_tracelog_##level(    \
      const char* file, int line, const char* func, const char* format, ...) {                  \
    va_list arguments;                                                                          \
    va_start(arguments, format);                                                                \
    weft_tracelog_at_##level(__builtin_return_address(0), file, line, func, format, arguments); \
    va_end(arguments);                                                                          \
  }                                                                                             \
  static __attribute__((noinline, unused, format(printf, 4, 0))) void weft_vtracelog_##level(   \
      const char* file, int line, const char* func, const char* format, va_list arguments) {    \
    weft_tracelog_at_##level(__builtin_return_address(0), file, line, func, format, arguments); \
  }
WEFT_TRACELOG_LEVELS(WEFT_TRACELOG_EVENT)
#undef WEFT_TRACELOG_EVENT

#define WEFT_TRACELOG_DESCRIBE(level)                                                          \
  WEFT_DESCRIBE_SHARED_EVENT("weft_tracelog", lttng_ust_tracelog, tlclass, lttng_ust_tracelog, \
                             level, level)
static void __attribute__((used, noinline, cold, no_instrument_function)) weft_describe_tracelog(
    void) {
  WEFT_DESCRIBE_SHARED_BEGIN("weft_tracelog")
  WEFT_TRACELOG_LEVELS(WEFT_TRACELOG_DESCRIBE)
}
#undef WEFT_TRACELOG_DESCRIBE

#pragma pop_macro("WEFT_TRACEPOINT_VISIBILITY")
#pragma pop_macro("WEFT_DESC_SECTION")
#pragma pop_macro("WEFT_DESC_END")
#pragma pop_macro("WEFT_IP")

#define lttng_ust_tracelog(level, ...)                                                      \
  do {                                                                                      \
    if (WEFT_TRACEPOINT_ENABLED(WEFT_JOIN(weft_tracepoint_lttng_ust_tracelog___, level))) { \
      WEFT_JOIN(weft_tracelog_, level)(__FILE__, __LINE__, __func__, __VA_ARGS__);          \
      __asm__ __volatile__("");                                                             \
    }                                                                                       \
  } while (0)

#define lttng_ust_vtracelog(level, format, arguments)                                       \
  do {                                                                                      \
    if (WEFT_TRACEPOINT_ENABLED(WEFT_JOIN(weft_tracepoint_lttng_ust_tracelog___, level))) { \
      WEFT_JOIN(weft_vtracelog_, level)(__FILE__, __LINE__, __func__, format, arguments);   \
      __asm__ __volatile__("");                                                             \
    }                                                                                       \
  } while (0)

#if LTTNG_UST_COMPAT_API(0)
#define tracelog lttng_ust_tracelog
#endif

#endif /* WEFT_TRACELOG_H_ */
