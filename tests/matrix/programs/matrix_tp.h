/* SPDX-License-Identifier: Apache-2.0 */
/* Tracepoints of the matrix's programs.
 * lint: not self-contained: included many times, by its bare name. */
#undef TRACEPOINT_PROVIDER
#define TRACEPOINT_PROVIDER matrix
#undef TRACEPOINT_INCLUDE
#define TRACEPOINT_INCLUDE "matrix_tp.h"

#if !defined(MATRIX_TP_H) || defined(TRACEPOINT_HEADER_MULTI_READ)
#define MATRIX_TP_H
#include <weft/tracepoint.h>

TRACEPOINT_EVENT(matrix, hit, TP_ARGS(int, number), TP_FIELDS(ctf_integer(int, number, number)))

TRACEPOINT_EVENT(matrix, text, TP_ARGS(const char*, text, int, number),
                 TP_FIELDS(ctf_string(text, text) ctf_integer(int, number, number)))

#endif
#include <weft/tracepoint-event.h>
