/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A provider that uses every macro of LTTng-UST's API version 0 and every kind of field. It is
 * built with LTTng's headers and with weft's. Its twin in the spelling of version 1 is
 * every_long_tp.h: change both.
 */
#undef TRACEPOINT_PROVIDER
#define TRACEPOINT_PROVIDER every_short

#undef TRACEPOINT_INCLUDE
#define TRACEPOINT_INCLUDE "./every_short_tp.h"

#if !defined(WEFT_TESTS_UST_EVERY_SHORT_TP_H_) || defined(TRACEPOINT_HEADER_MULTI_READ)
#define WEFT_TESTS_UST_EVERY_SHORT_TP_H_

#include <lttng/tracepoint.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* clang-format off */

/* --- integers --------------------------------------------------------------------------- */

TRACEPOINT_EVENT(every_short, integers,
  TP_ARGS(signed char, i8, unsigned char, u8, short, i16, unsigned short, u16, int, i32,
                    unsigned int, u32, long, i64, unsigned long, u64, bool, truth, char, letter),
  TP_FIELDS(
    ctf_integer(signed char, i8, i8)
    ctf_integer(unsigned char, u8, u8)
    ctf_integer(short, i16, i16)
    ctf_integer(unsigned short, u16, u16)
    ctf_integer(int, i32, i32)
    ctf_integer(unsigned int, u32, u32)
    ctf_integer(long, i64, i64)
    ctf_integer(unsigned long, u64, u64)
    ctf_integer(bool, truth, truth)
    ctf_integer(char, letter, letter)
    ctf_integer(long long, sum, (long long) i8 + i16)
    ctf_integer(unsigned char, cut, u64)
  )
)

TRACEPOINT_EVENT(every_short, bases,
  TP_ARGS(int, number, void *, address, uint16_t, n16, uint32_t, n32, uint64_t, n64),
  TP_FIELDS(
    ctf_integer_hex(int, hex, number)
    ctf_integer_hex(unsigned short, hex16, number)
    ctf_integer_hex(unsigned long, address, (unsigned long) address)
    ctf_integer_network(uint16_t, n16, n16)
    ctf_integer_network(int32_t, n32, n32)
    ctf_integer_network_hex(uint32_t, n32_hex, n32)
    ctf_integer_network_hex(uint64_t, n64_hex, n64)
    ctf_integer_nowrite(int, hidden, number)
  )
)

/* --- floats and strings ------------------------------------------------------------------ */

TRACEPOINT_EVENT(every_short, floats,
  TP_ARGS(float, f, double, d),
  TP_FIELDS(
    ctf_float(float, f, f)
    ctf_float(double, d, d)
    ctf_float(double, product, f * d)
    ctf_float_nowrite(double, hidden, d)
  )
)

TRACEPOINT_EVENT(every_short, strings,
  TP_ARGS(const char *, one, const char *, two),
  TP_FIELDS(
    ctf_string(one, one)
    ctf_string_nowrite(hidden, one)
    ctf_string(two, two)
    ctf_integer(signed char, first, two ? two[0] : '-')
  )
)

/* --- arrays and sequences ---------------------------------------------------------------- */

TRACEPOINT_EVENT(every_short, arrays,
  TP_ARGS(const int *, ints, const unsigned short *, shorts, const char *, text),
  TP_FIELDS(
    ctf_array(int, ints, ints, 3)
    ctf_array_hex(unsigned short, hex, shorts, 3)
    ctf_array_network(unsigned short, network, shorts, 3)
    ctf_array_network_hex(unsigned short, network_hex, shorts, 1)
    ctf_array_text(char, text, text, 5)
    ctf_array_text(char, padded, text, 20)
    ctf_array_text(char, long_padded, text, 80)
    ctf_array(int, many, ints, 20)
    ctf_array(int, none, NULL, 0)
    ctf_array_nowrite(int, hidden_ints, ints, 3)
    ctf_array_nowrite_hex(unsigned short, hidden_hex, shorts, 3)
    ctf_array_network_nowrite(unsigned short, hidden_network, shorts, 3)
    ctf_array_network_nowrite_hex(unsigned short, hidden_network_hex, shorts, 3)
    ctf_array_text_nowrite(char, hidden_text, text, 20)
  )
)

TRACEPOINT_EVENT(every_short, sequences,
  TP_ARGS(const int *, ints, size_t, int_count, const unsigned short *, shorts,
                    unsigned char, short_count, const char *, text, unsigned int, text_size),
  TP_FIELDS(
    ctf_sequence(int, ints, ints, size_t, int_count)
    ctf_sequence_hex(unsigned short, hex, shorts, unsigned char, short_count)
    ctf_sequence_network(unsigned short, network, shorts, unsigned short, short_count)
    ctf_sequence_network_hex(unsigned short, network_hex, shorts, size_t, short_count)
    ctf_sequence_text(char, text, text, unsigned int, text_size)
    ctf_sequence(long, empty, NULL, unsigned long, 0)
    ctf_sequence_nowrite(int, hidden_ints, ints, size_t, int_count)
    ctf_sequence_nowrite_hex(int, hidden_hex, ints, size_t, int_count)
    ctf_sequence_network_nowrite(int, hidden_network, ints, size_t, int_count)
    ctf_sequence_network_nowrite_hex(int, hidden_network_hex, ints, size_t, int_count)
    ctf_sequence_text_nowrite(char, hidden_text, text, unsigned int, text_size)
  )
)

/* --- enumerations ------------------------------------------------------------------------ */

TRACEPOINT_ENUM(every_short, state,
  TP_ENUM_VALUES(
    ctf_enum_value("off", 0)
    ctf_enum_value("on", 1)
    ctf_enum_range("a few of 100%", 2, 9)
    ctf_enum_auto("next")
    ctf_enum_value("below", -5)
  )
)

TRACEPOINT_ENUM(every_short, kind,
  TP_ENUM_VALUES(
    ctf_enum_auto("first")
    ctf_enum_auto("second")
    ctf_enum_range("upper half", 128U, 255U)
  )
)

TRACEPOINT_EVENT(every_short, enums,
  TP_ARGS(int, state, unsigned int, kind),
  TP_FIELDS(
    ctf_enum(every_short, state, int, state, state)
    ctf_enum(every_short, kind, unsigned char, kind, kind)
    ctf_enum_nowrite(every_short, state, long, hidden, state)
    ctf_enum(every_short, state, signed char, again, state)
  )
)

/* --- what is not recorded ---------------------------------------------------------------- */

TRACEPOINT_EVENT(every_short, nothing, TP_ARGS(), TP_FIELDS())
TRACEPOINT_EVENT(every_short, nothing_void, TP_ARGS(void), TP_FIELDS())

TRACEPOINT_EVENT(every_short, unused,
  TP_ARGS(int, used, int, unused, int, unused_too),
  TP_FIELDS(
    ctf_unused(unused)
    ctf_integer(int, used, used)
    ctf_unused_nowrite(unused_too)
  )
)

TRACEPOINT_EVENT(every_short, hidden_only,
  TP_ARGS(int, number, const char *, text),
  TP_FIELDS(
    ctf_integer_nowrite(int, number, number)
    ctf_string_nowrite(text, text)
  )
)

/* --- classes, log levels, URIs ----------------------------------------------------------- */

TRACEPOINT_EVENT_CLASS(every_short, level,
  TP_ARGS(int, number, const char *, text),
  TP_FIELDS(
    ctf_integer(int, number, number)
    ctf_string(text, text)
  )
)
#define EVERY_SHORT_LEVEL(event, log_level) \
  TRACEPOINT_EVENT_INSTANCE(every_short, level, event, \
                                      TP_ARGS(int, number, const char *, text)) \
  TRACEPOINT_LOGLEVEL(every_short, event, log_level)
TRACEPOINT_EVENT_INSTANCE(every_short, level, level_default,
  TP_ARGS(int, number, const char *, text))
EVERY_SHORT_LEVEL(level_emerg, TRACE_EMERG)
EVERY_SHORT_LEVEL(level_alert, TRACE_ALERT)
EVERY_SHORT_LEVEL(level_crit, TRACE_CRIT)
EVERY_SHORT_LEVEL(level_err, TRACE_ERR)
EVERY_SHORT_LEVEL(level_warning, TRACE_WARNING)
EVERY_SHORT_LEVEL(level_notice, TRACE_NOTICE)
EVERY_SHORT_LEVEL(level_info, TRACE_INFO)
EVERY_SHORT_LEVEL(level_debug_system, TRACE_DEBUG_SYSTEM)
EVERY_SHORT_LEVEL(level_debug_program, TRACE_DEBUG_PROGRAM)
EVERY_SHORT_LEVEL(level_debug_process, TRACE_DEBUG_PROCESS)
EVERY_SHORT_LEVEL(level_debug_module, TRACE_DEBUG_MODULE)
EVERY_SHORT_LEVEL(level_debug_unit, TRACE_DEBUG_UNIT)
EVERY_SHORT_LEVEL(level_debug_function, TRACE_DEBUG_FUNCTION)
EVERY_SHORT_LEVEL(level_debug_line, TRACE_DEBUG_LINE)
EVERY_SHORT_LEVEL(level_debug, TRACE_DEBUG)
TRACEPOINT_MODEL_EMF_URI(every_short, level_debug, "http://example.com/m?q=every%3Adebug")

/* clang-format on */

#endif /* WEFT_TESTS_UST_EVERY_SHORT_TP_H_ */

#include <lttng/tracepoint-event.h>
