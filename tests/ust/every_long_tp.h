/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A provider that uses every macro of LTTng-UST's API version 1 and every kind of field. It is
 * built with LTTng's headers and with weft's. Its twin in the spelling of version 0 is
 * every_short_tp.h: change both.
 */
#undef LTTNG_UST_TRACEPOINT_PROVIDER
#define LTTNG_UST_TRACEPOINT_PROVIDER every_long

#undef LTTNG_UST_TRACEPOINT_INCLUDE
#define LTTNG_UST_TRACEPOINT_INCLUDE "./every_long_tp.h"

#if !defined(WEFT_TESTS_UST_EVERY_LONG_TP_H_) || defined(LTTNG_UST_TRACEPOINT_HEADER_MULTI_READ)
#define WEFT_TESTS_UST_EVERY_LONG_TP_H_

#include <lttng/tracepoint.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* clang-format off */

/* --- integers --------------------------------------------------------------------------- */

LTTNG_UST_TRACEPOINT_EVENT(every_long, integers,
  LTTNG_UST_TP_ARGS(signed char, i8, unsigned char, u8, short, i16, unsigned short, u16, int, i32,
                    unsigned int, u32, long, i64, unsigned long, u64, bool, truth, char, letter),
  LTTNG_UST_TP_FIELDS(
    lttng_ust_field_integer(signed char, i8, i8)
    lttng_ust_field_integer(unsigned char, u8, u8)
    lttng_ust_field_integer(short, i16, i16)
    lttng_ust_field_integer(unsigned short, u16, u16)
    lttng_ust_field_integer(int, i32, i32)
    lttng_ust_field_integer(unsigned int, u32, u32)
    lttng_ust_field_integer(long, i64, i64)
    lttng_ust_field_integer(unsigned long, u64, u64)
    lttng_ust_field_integer(bool, truth, truth)
    lttng_ust_field_integer(char, letter, letter)
    lttng_ust_field_integer(long long, sum, (long long) i8 + i16)
    lttng_ust_field_integer(unsigned char, cut, u64)
  )
)

LTTNG_UST_TRACEPOINT_EVENT(every_long, bases,
  LTTNG_UST_TP_ARGS(int, number, void *, address, uint16_t, n16, uint32_t, n32, uint64_t, n64),
  LTTNG_UST_TP_FIELDS(
    lttng_ust_field_integer_hex(int, hex, number)
    lttng_ust_field_integer_hex(unsigned short, hex16, number)
    lttng_ust_field_integer_hex(unsigned long, address, (unsigned long) address)
    lttng_ust_field_integer_network(uint16_t, n16, n16)
    lttng_ust_field_integer_network(int32_t, n32, n32)
    lttng_ust_field_integer_network_hex(uint32_t, n32_hex, n32)
    lttng_ust_field_integer_network_hex(uint64_t, n64_hex, n64)
    lttng_ust_field_integer_nowrite(int, hidden, number)
  )
)

/* --- floats and strings ------------------------------------------------------------------ */

LTTNG_UST_TRACEPOINT_EVENT(every_long, floats,
  LTTNG_UST_TP_ARGS(float, f, double, d),
  LTTNG_UST_TP_FIELDS(
    lttng_ust_field_float(float, f, f)
    lttng_ust_field_float(double, d, d)
    lttng_ust_field_float(double, product, f * d)
    lttng_ust_field_float_nowrite(double, hidden, d)
  )
)

LTTNG_UST_TRACEPOINT_EVENT(every_long, strings,
  LTTNG_UST_TP_ARGS(const char *, one, const char *, two),
  LTTNG_UST_TP_FIELDS(
    lttng_ust_field_string(one, one)
    lttng_ust_field_string_nowrite(hidden, one)
    lttng_ust_field_string(two, two)
    lttng_ust_field_integer(signed char, first, two ? two[0] : '-')
  )
)

/* --- arrays and sequences ---------------------------------------------------------------- */

LTTNG_UST_TRACEPOINT_EVENT(every_long, arrays,
  LTTNG_UST_TP_ARGS(const int *, ints, const unsigned short *, shorts, const char *, text),
  LTTNG_UST_TP_FIELDS(
    lttng_ust_field_array(int, ints, ints, 3)
    lttng_ust_field_array_hex(unsigned short, hex, shorts, 3)
    lttng_ust_field_array_network(unsigned short, network, shorts, 3)
    lttng_ust_field_array_network_hex(unsigned short, network_hex, shorts, 1)
    lttng_ust_field_array_text(char, text, text, 5)
    lttng_ust_field_array_text(char, padded, text, 20)
    lttng_ust_field_array_text(char, long_padded, text, 80)
    lttng_ust_field_array(int, many, ints, 20)
    lttng_ust_field_array(int, none, NULL, 0)
    lttng_ust_field_array_nowrite(int, hidden_ints, ints, 3)
    lttng_ust_field_array_nowrite_hex(unsigned short, hidden_hex, shorts, 3)
    lttng_ust_field_array_network_nowrite(unsigned short, hidden_network, shorts, 3)
    lttng_ust_field_array_network_nowrite_hex(unsigned short, hidden_network_hex, shorts, 3)
    lttng_ust_field_array_text_nowrite(char, hidden_text, text, 20)
  )
)

LTTNG_UST_TRACEPOINT_EVENT(every_long, sequences,
  LTTNG_UST_TP_ARGS(const int *, ints, size_t, int_count, const unsigned short *, shorts,
                    unsigned char, short_count, const char *, text, unsigned int, text_size),
  LTTNG_UST_TP_FIELDS(
    lttng_ust_field_sequence(int, ints, ints, size_t, int_count)
    lttng_ust_field_sequence_hex(unsigned short, hex, shorts, unsigned char, short_count)
    lttng_ust_field_sequence_network(unsigned short, network, shorts, unsigned short, short_count)
    lttng_ust_field_sequence_network_hex(unsigned short, network_hex, shorts, size_t, short_count)
    lttng_ust_field_sequence_text(char, text, text, unsigned int, text_size)
    lttng_ust_field_sequence(long, empty, NULL, unsigned long, 0)
    lttng_ust_field_sequence_nowrite(int, hidden_ints, ints, size_t, int_count)
    lttng_ust_field_sequence_nowrite_hex(int, hidden_hex, ints, size_t, int_count)
    lttng_ust_field_sequence_network_nowrite(int, hidden_network, ints, size_t, int_count)
    lttng_ust_field_sequence_network_nowrite_hex(int, hidden_network_hex, ints, size_t, int_count)
    lttng_ust_field_sequence_text_nowrite(char, hidden_text, text, unsigned int, text_size)
  )
)

/* --- enumerations ------------------------------------------------------------------------ */

LTTNG_UST_TRACEPOINT_ENUM(every_long, state,
  LTTNG_UST_TP_ENUM_VALUES(
    lttng_ust_field_enum_value("off", 0)
    lttng_ust_field_enum_value("on", 1)
    lttng_ust_field_enum_range("a few of 100%", 2, 9)
    lttng_ust_field_enum_auto("next")
    lttng_ust_field_enum_value("below", -5)
  )
)

LTTNG_UST_TRACEPOINT_ENUM(every_long, kind,
  LTTNG_UST_TP_ENUM_VALUES(
    lttng_ust_field_enum_auto("first")
    lttng_ust_field_enum_auto("second")
    lttng_ust_field_enum_range("upper half", 128U, 255U)
  )
)

LTTNG_UST_TRACEPOINT_EVENT(every_long, enums,
  LTTNG_UST_TP_ARGS(int, state, unsigned int, kind),
  LTTNG_UST_TP_FIELDS(
    lttng_ust_field_enum(every_long, state, int, state, state)
    lttng_ust_field_enum(every_long, kind, unsigned char, kind, kind)
    lttng_ust_field_enum_nowrite(every_long, state, long, hidden, state)
    lttng_ust_field_enum(every_long, state, signed char, again, state)
  )
)

/* --- what is not recorded ---------------------------------------------------------------- */

LTTNG_UST_TRACEPOINT_EVENT(every_long, nothing, LTTNG_UST_TP_ARGS(), LTTNG_UST_TP_FIELDS())
LTTNG_UST_TRACEPOINT_EVENT(every_long, nothing_void, LTTNG_UST_TP_ARGS(void), LTTNG_UST_TP_FIELDS())

LTTNG_UST_TRACEPOINT_EVENT(every_long, unused,
  LTTNG_UST_TP_ARGS(int, used, int, unused, int, unused_too),
  LTTNG_UST_TP_FIELDS(
    lttng_ust_field_unused(unused)
    lttng_ust_field_integer(int, used, used)
    lttng_ust_field_unused_nowrite(unused_too)
  )
)

LTTNG_UST_TRACEPOINT_EVENT(every_long, hidden_only,
  LTTNG_UST_TP_ARGS(int, number, const char *, text),
  LTTNG_UST_TP_FIELDS(
    lttng_ust_field_integer_nowrite(int, number, number)
    lttng_ust_field_string_nowrite(text, text)
  )
)

/* --- classes, log levels, URIs ----------------------------------------------------------- */

LTTNG_UST_TRACEPOINT_EVENT_CLASS(every_long, level,
  LTTNG_UST_TP_ARGS(int, number, const char *, text),
  LTTNG_UST_TP_FIELDS(
    lttng_ust_field_integer(int, number, number)
    lttng_ust_field_string(text, text)
  )
)
#define EVERY_LONG_LEVEL(event, log_level) \
  LTTNG_UST_TRACEPOINT_EVENT_INSTANCE(every_long, level, every_long, event, \
                                      LTTNG_UST_TP_ARGS(int, number, const char *, text)) \
  LTTNG_UST_TRACEPOINT_LOGLEVEL(every_long, event, log_level)
LTTNG_UST_TRACEPOINT_EVENT_INSTANCE(every_long, level, every_long, level_default,
  LTTNG_UST_TP_ARGS(int, number, const char *, text))
EVERY_LONG_LEVEL(level_emerg, LTTNG_UST_TRACEPOINT_LOGLEVEL_EMERG)
EVERY_LONG_LEVEL(level_alert, LTTNG_UST_TRACEPOINT_LOGLEVEL_ALERT)
EVERY_LONG_LEVEL(level_crit, LTTNG_UST_TRACEPOINT_LOGLEVEL_CRIT)
EVERY_LONG_LEVEL(level_err, LTTNG_UST_TRACEPOINT_LOGLEVEL_ERR)
EVERY_LONG_LEVEL(level_warning, LTTNG_UST_TRACEPOINT_LOGLEVEL_WARNING)
EVERY_LONG_LEVEL(level_notice, LTTNG_UST_TRACEPOINT_LOGLEVEL_NOTICE)
EVERY_LONG_LEVEL(level_info, LTTNG_UST_TRACEPOINT_LOGLEVEL_INFO)
EVERY_LONG_LEVEL(level_debug_system, LTTNG_UST_TRACEPOINT_LOGLEVEL_DEBUG_SYSTEM)
EVERY_LONG_LEVEL(level_debug_program, LTTNG_UST_TRACEPOINT_LOGLEVEL_DEBUG_PROGRAM)
EVERY_LONG_LEVEL(level_debug_process, LTTNG_UST_TRACEPOINT_LOGLEVEL_DEBUG_PROCESS)
EVERY_LONG_LEVEL(level_debug_module, LTTNG_UST_TRACEPOINT_LOGLEVEL_DEBUG_MODULE)
EVERY_LONG_LEVEL(level_debug_unit, LTTNG_UST_TRACEPOINT_LOGLEVEL_DEBUG_UNIT)
EVERY_LONG_LEVEL(level_debug_function, LTTNG_UST_TRACEPOINT_LOGLEVEL_DEBUG_FUNCTION)
EVERY_LONG_LEVEL(level_debug_line, LTTNG_UST_TRACEPOINT_LOGLEVEL_DEBUG_LINE)
EVERY_LONG_LEVEL(level_debug, LTTNG_UST_TRACEPOINT_LOGLEVEL_DEBUG)
LTTNG_UST_TRACEPOINT_MODEL_EMF_URI(every_long, level_debug, "http://example.com/m?q=every%3Adebug")

/* clang-format on */

#endif /* WEFT_TESTS_UST_EVERY_LONG_TP_H_ */

#include <lttng/tracepoint-event.h>
