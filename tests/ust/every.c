/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Emits every event of every_*_tp.h, and tracef and tracelog, with fixed values. It is built as C
 * and as C++, with weft's headers and with LTTng's. #line sets the lines that tracelog records,
 * which are in every.expected.
 */
#include <arpa/inet.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <lttng/tracef.h>
#include <lttng/tracelog.h>
#include "./every_ip_tp.h"
#include "./every_long_tp.h"
#include "./every_short_tp.h"

#define EMIT(event, ...)                                  \
  do {                                                    \
    lttng_ust_tracepoint(every_long, event, __VA_ARGS__); \
    tracepoint(every_short, event, __VA_ARGS__);          \
  } while (0)

static int evaluations;
static int evaluate(int value) {
  evaluations++;
  return value;
}

#line 100
static void emit_v(const char* format, ...) {
  va_list arguments;
  va_start(arguments, format);
  lttng_ust_vtracef(format, arguments);
  va_end(arguments);
  va_start(arguments, format);
  lttng_ust_vtracelog(LTTNG_UST_TRACEPOINT_LOGLEVEL_NOTICE, format, arguments);
  va_end(arguments);
}

static void emit_numbers(void) {
  EMIT(integers, -128, 255, -32768, 65535, -2147483647 - 1, 4294967295u, -9223372036854775807L - 1,
       18446744073709551615UL, true, 'w');
  EMIT(integers, 1, 2, 3, 4, 5, 6, 7, 8, false, 'x');
  EMIT(bases, -1, (void*)0x1234, htons(4660), htonl(305419896), 0x0807060504030201UL);
  EMIT(floats, 1.5f, -0.1);
  EMIT(enums, 0, 0);
  EMIT(enums, 1, 1);
  EMIT(enums, 7, 200);
  EMIT(enums, 10, 255);
  EMIT(enums, -5, 128);
}

static void emit_texts(void) {
  static const int ints[20] = {1,  -2, 3,  4,  5,  6,  7,  8,  9,  10,
                               11, 12, 13, 14, 15, 16, 17, 18, 19, 20};
  static const unsigned short shorts[3] = {0x1234, 0xffff, 1};
  static const char text[] = "hello";
  EMIT(strings, "one", "two");
  EMIT(strings, "", "\303\251t\303\251");
  EMIT(strings, NULL, NULL);
  EMIT(arrays, ints, shorts, text);
  EMIT(sequences, ints, 3, shorts, 2, text, 5);
  EMIT(sequences, ints, 0, shorts, 0, text, 0);
}

static void emit_rest(void) {
  lttng_ust_tracepoint(every_long, nothing);
  tracepoint(every_short, nothing);
  lttng_ust_tracepoint(every_long, nothing_void);
  tracepoint(every_short, nothing_void);
  EMIT(unused, 1, 2, 3);
  EMIT(hidden_only, 4, "hidden");
  EMIT(level_default, 13, "default");
  EMIT(level_emerg, 0, "emerg");
  EMIT(level_alert, 1, "alert");
  EMIT(level_crit, 2, "crit");
  EMIT(level_err, 3, "err");
  EMIT(level_warning, 4, "warning");
  EMIT(level_notice, 5, "notice");
  EMIT(level_info, 6, "info");
  EMIT(level_debug_system, 7, "system");
  EMIT(level_debug_program, 8, "program");
  EMIT(level_debug_process, 9, "process");
  EMIT(level_debug_module, 10, "module");
  EMIT(level_debug_unit, 11, "unit");
  EMIT(level_debug_function, 12, "function");
  EMIT(level_debug_line, 13, "line");
  EMIT(level_debug, 14, "debug");
}

/* Arguments are evaluated once if the event is on, otherwise not at all. */
static void emit_with_side_effects(void) {
  if (lttng_ust_tracepoint_enabled(every_long, unused)) {
    lttng_ust_do_tracepoint(every_long, unused, 5, 6, 7);
  }
  if (tracepoint_enabled(every_short, unused)) do_tracepoint(every_short, unused, 5, 6, 7);
  lttng_ust_tracepoint(every_long, unused, evaluate(8), 0, 0);
  tracepoint(every_short, unused, evaluate(8), 0, 0);
}

#line 200
static void emit_messages(void) {
  char long_text[400];
  memset(long_text, 'x', sizeof(long_text) - 1);
  long_text[sizeof(long_text) - 1] = 0;
  lttng_ust_tracef("long %d %s", 1, "text");
  tracef("short");
  tracef("%s", long_text);
  emit_v("v %d", 2);
  lttng_ust_tracelog(LTTNG_UST_TRACEPOINT_LOGLEVEL_WARNING, "long %d", 3);
  tracelog(LTTNG_UST_TRACEPOINT_LOGLEVEL_INFO, "short");
}

int main(void) {
  emit_numbers();
  emit_texts();
  emit_rest();
  emit_with_side_effects();
  emit_messages();
  lttng_ust_tracepoint(every_ip, given, 1, (const void*)0x1234);
  printf("evaluations %d\n", evaluations);
  return 0;
}
