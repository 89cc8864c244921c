/* SPDX-License-Identifier: Apache-2.0 */
/* Files that lttng-gen-tp makes of a template: all kinds of fields with the template's own
 * blanks, in network order too. */
#undef TRACEPOINT_PROVIDER
#define TRACEPOINT_PROVIDER shape_template

#undef TRACEPOINT_INCLUDE
#define TRACEPOINT_INCLUDE "./shapes/template_tp.h"

#if !defined(SHAPES_TEMPLATE_TP_H_) || defined(TRACEPOINT_HEADER_MULTI_READ)
#define SHAPES_TEMPLATE_TP_H_

#include <arpa/inet.h>
#include <lttng/tracepoint.h>

TRACEPOINT_EVENT(
    shape_template, tptest,
    TP_ARGS(int, anint, int, netint, long*, values, char*, text, size_t, textlen, double, doublearg,
            float, floatarg),
    TP_FIELDS(
        ctf_integer(int, intfield, anint) ctf_integer_hex(int, intfield2, anint)
            ctf_integer(long, longfield, (long)anint) ctf_integer_network(int, netintfield, netint)
                ctf_integer_network_hex(int, netintfieldhex, netint)
                    ctf_array(long, arrfield1, values, 3) ctf_array_text(char, arrfield2, text, 10)
                        ctf_array_network(long, arrfield3, values, 3)
                            ctf_sequence(char, seqfield1, text, size_t, textlen)
                                ctf_sequence_text(char, seqfield2, text, size_t, textlen)
                                    ctf_sequence(long, seqfield3, values, uint8_t, 3)
                                        ctf_string(stringfield, text)
                                            ctf_float(float, floatfield, floatarg)
                                                ctf_float(double, doublefield, doublearg)
                                                    ctf_integer_nowrite(int, filterfield, anint)
                                                        ctf_string_nowrite(filtertext, text)))

TRACEPOINT_LOGLEVEL(shape_template, tptest, TRACE_WARNING)

#endif

#include <lttng/tracepoint-event.h>
