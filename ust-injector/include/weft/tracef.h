/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tracef(format, ...) prints into the trace like printf, as the field msg of the event
 * lttng_ust_tracef:event. Nothing is evaluated or formatted while the event is off. It is safe in
 * every thread. In a signal handler it is as safe as vsnprintf (and malloc, for more than 255
 * bytes).
 */
#pragma GCC system_header
#ifndef WEFT_TRACEF_H_
#define WEFT_TRACEF_H_

#include "detail/message.h"
#include "detail/shared_event.h"
#include "tracepoint.h"

#define WEFT_TRACEF_ARGS (const char*, msg, unsigned int, len, void*, ip)

#pragma push_macro("WEFT_TRACEPOINT_VISIBILITY")
#pragma push_macro("WEFT_DESC_SECTION")
#pragma push_macro("WEFT_DESC_END")
#pragma push_macro("WEFT_IP")
#undef WEFT_TRACEPOINT_VISIBILITY
#undef WEFT_DESC_SECTION
#undef WEFT_DESC_END
#undef WEFT_IP
#define WEFT_TRACEPOINT_VISIBILITY __attribute__((weak, visibility("hidden")))
#define WEFT_DESC_SECTION WEFT_DESC_OF_GROUP("weft_tracef")
#define WEFT_DESC_END WEFT_DESC_END_OF_GROUP
#define WEFT_IP ip

typedef int weft_the_provider_is_lttng_ust_tracef;
WEFT_DEFINE_CLASS(lttng_ust_tracef, event, WEFT_TRACEF_ARGS,
                  lttng_ust_field_sequence_text(char, msg, msg, unsigned int, len)
                      lttng_ust_field_unused(ip))
WEFT_SHARED_EVENT(lttng_ust_tracef, event, lttng_ust_tracef, event, WEFT_TRACEF_ARGS)

static void __attribute__((used, noinline, cold, no_instrument_function)) weft_describe_tracef(
    void) {
  WEFT_DESCRIBE_SHARED_BEGIN("weft_tracef")
  WEFT_DESCRIBE_SHARED_EVENT("weft_tracef", lttng_ust_tracef, event, lttng_ust_tracef, event,
                             LTTNG_UST_TRACEPOINT_LOGLEVEL_DEBUG)
}

#pragma pop_macro("WEFT_TRACEPOINT_VISIBILITY")
#pragma pop_macro("WEFT_DESC_SECTION")
#pragma pop_macro("WEFT_DESC_END")
#pragma pop_macro("WEFT_IP")

static __attribute__((noinline, unused, format(printf, 2, 0))) void weft_tracef_at(
    void* ip, const char* format, va_list arguments) {
  struct weft_message m;
  if (weft_message_make(&m, format, arguments)) {
    weft_call_lttng_ust_tracef___event(m.text, m.size, ip);
  }
  weft_message_free(&m);
}

static __attribute__((noinline, unused, format(printf, 1, 2))) void weft_tracef(const char* format,
                                                                                ...) {
  va_list arguments;
  va_start(arguments, format);
  weft_tracef_at(__builtin_return_address(0), format, arguments);
  va_end(arguments);
}

static __attribute__((noinline, unused, format(printf, 1, 0))) void weft_vtracef(
    const char* format, va_list arguments) {
  weft_tracef_at(__builtin_return_address(0), format, arguments);
}

#define lttng_ust_tracef(...)                                                \
  do {                                                                       \
    if (WEFT_TRACEPOINT_ENABLED(weft_tracepoint_lttng_ust_tracef___event)) { \
      weft_tracef(__VA_ARGS__);                                              \
      __asm__ __volatile__("");                                              \
    }                                                                        \
  } while (0)

#define lttng_ust_vtracef(format, arguments)                                 \
  do {                                                                       \
    if (WEFT_TRACEPOINT_ENABLED(weft_tracepoint_lttng_ust_tracef___event)) { \
      weft_vtracef(format, arguments);                                       \
      __asm__ __volatile__("");                                              \
    }                                                                        \
  } while (0)

#if LTTNG_UST_COMPAT_API(0)
#define tracef lttng_ust_tracef
#endif

#endif /* WEFT_TRACEF_H_ */
