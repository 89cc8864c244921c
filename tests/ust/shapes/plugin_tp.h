/* SPDX-License-Identifier: Apache-2.0 */
/* Plugins of games, data bases and telephony: bit fields, members of structs, casts of C,
 * conditional events, expressions with commas in parentheses, strings in structs, a field named
 * as its type. */
#undef TRACEPOINT_PROVIDER
#define TRACEPOINT_PROVIDER shape_plugin

#undef TRACEPOINT_INCLUDE
#define TRACEPOINT_INCLUDE "shapes/plugin_tp.h"

#if !defined(SHAPES_PLUGIN_TP_H_) || defined(TRACEPOINT_HEADER_MULTI_READ)
#define SHAPES_PLUGIN_TP_H_

#include <lttng/tracepoint.h>
#include <stdint.h>

#ifndef SHAPES_PLUGIN_TYPES
#define SHAPES_PLUGIN_TYPES
struct shape_call {
  unsigned kind : 3, closed : 1;
  char name[20];
  unsigned char digest[32];
  uint16_t ports[2];
  const char* labels[2];
};
static inline int shape_larger(int a, int b) { return a > b ? a : b; }
#endif

TRACEPOINT_EVENT(
    shape_plugin, call, TP_ARGS(const struct shape_call*, call, int, a, int, b, char, letter),
    TP_FIELDS(ctf_integer(unsigned, kind, call->kind) ctf_integer(unsigned char, closed,
                                                                  call->closed)
                  ctf_string(name, call->name) ctf_array_text(char, name_text, call->name, 20)
                      ctf_array_hex(unsigned char, digest, call->digest, 32)
                          ctf_array_network(uint16_t, ports, call->ports, 2)
                              ctf_string(label, call->labels[1])
                                  ctf_integer(int, larger, (shape_larger(a, b)))
                                      ctf_integer(short, narrow, (short)(a + b))
                                          ctf_integer(char, letter, letter)
                                              ctf_sequence_text(char, uint16_t, call->name, uint8_t,
                                                                (uint8_t)sizeof(call->name))))

#ifdef SHAPES_PLUGIN_MORE
TRACEPOINT_EVENT(shape_plugin, never, TP_ARGS(int, a), TP_FIELDS(ctf_integer(int, a, a)))
#endif

#endif

#include <lttng/tracepoint-event.h>
