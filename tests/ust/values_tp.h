/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Values that an expression only points to: a buffer that the next expression also uses, a C
 * compound literal, a C++ temporary. values.c has the functions.
 */
#undef TRACEPOINT_PROVIDER
#define TRACEPOINT_PROVIDER values
#undef TRACEPOINT_INCLUDE
#define TRACEPOINT_INCLUDE "./values_tp.h"
#if !defined(WEFT_TESTS_UST_VALUES_TP_H_) || defined(TRACEPOINT_HEADER_MULTI_READ)
#define WEFT_TESTS_UST_VALUES_TP_H_

#include <weft/tracepoint.h>

/* clang-format off */
TRACEPOINT_EVENT(values, texts,
  TP_ARGS(int, a, int, b),
  TP_FIELDS(
    ctf_string(from, dotted(a))
    ctf_array_text(char, padded, dotted(a + 1), 80)
    ctf_array_text(char, inside, dotted(a + 2), 12)
    ctf_sequence_text(char, part, dotted(b), unsigned, 2)
    ctf_string(to, dotted(b))
    ctf_string_nowrite(hidden, dotted(3))
    ctf_sequence_nowrite(int, hidden_list, numbers(5), unsigned, 3)
  )
)

TRACEPOINT_EVENT(values, lists,
  TP_ARGS(int, a),
  TP_FIELDS(
    ctf_sequence(int, one, numbers(a), unsigned, 3)
    ctf_sequence_network(int, two, numbers(a + 10), unsigned, 3)
    ctf_array(int, three, numbers(a + 20), 20)
    ctf_array(int, four, numbers(a + 30), 3)
    ctf_sequence(int, none, NULL, int, 3)
  )
)

/* Each is longer than the room that a probe has on its stack. */
TRACEPOINT_EVENT(values, letters,
  TP_ARGS(unsigned, a, unsigned, b, unsigned, c),
  TP_FIELDS(
    ctf_string(one, repeated('a', a))
    ctf_sequence_text(char, two, repeated('b', b), unsigned, b)
    ctf_string(three, repeated('c', c))
    ctf_string_nowrite(hidden, repeated('h', 5000))
  )
)

TRACEPOINT_EVENT(values, interrupted,
  TP_ARGS(unsigned, size),
  TP_FIELDS(
    ctf_string(before, repeated('x', size))
    ctf_integer(int, inside, interrupt(size))
    ctf_string(after, repeated('z', size))
  )
)

TRACEPOINT_EVENT(values, leaves,
  TP_ARGS(int, number),
  TP_FIELDS(
    ctf_string(one, repeated('l', 1000))
    ctf_integer(int, number, left(number))
  )
)

TRACEPOINT_EVENT(values, wrong_length,
  TP_ARGS(unsigned, length),
  TP_FIELDS(
    ctf_sequence(int, list, numbers(1), unsigned, length)
    ctf_integer(unsigned, length, length)
  )
)

#ifdef __cplusplus
TRACEPOINT_EVENT(values, temporaries,
  TP_ARGS(const char *, name),
  TP_FIELDS(
    ctf_string(one, (std::string("the first name, which is longer than any small string: ") +
                     name).c_str())
    ctf_sequence_text(char, two,
                      (std::string("another text that has no room in the object: ") + name).c_str(),
                      unsigned, 53)
    ctf_string(three, (std::string(1000, 'l') + name).c_str())
  )
)

TRACEPOINT_EVENT(values, throws,
  TP_ARGS(int, number),
  TP_FIELDS(
    ctf_string(one, std::string(1000, 't').c_str())
    ctf_integer(int, number, thrown(number))
  )
)
#else
TRACEPOINT_EVENT(values, literals,
  TP_ARGS(int, a),
  TP_FIELDS(
    ctf_sequence(int, one, ((int[]){a, a + 1}), unsigned, 2)
    ctf_sequence(int, two, ((int[]){-a, -a - 1}), unsigned, 2)
    ctf_array(int, three, returned(a).numbers, 2)
    ctf_string(four, returned(a).text)
    ctf_string(five, returned(a + 1).text)
  )
)
#endif
/* clang-format on */

#endif /* WEFT_TESTS_UST_VALUES_TP_H_ */
#include <weft/tracepoint-event.h>
