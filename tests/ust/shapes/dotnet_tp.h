/* SPDX-License-Identifier: Apache-2.0 */
/* .NET's runtime: classes and instances through macros of the header's own, arguments of const
 * types, ten of them, sequences of bytes, an instance of another macro layer. */
#undef TRACEPOINT_PROVIDER
#define TRACEPOINT_PROVIDER shape_dotnet

#undef TRACEPOINT_INCLUDE
#define TRACEPOINT_INCLUDE "shapes/dotnet_tp.h"

#if !defined(SHAPES_DOTNET_TP_H_) || defined(TRACEPOINT_HEADER_MULTI_READ)
#define SHAPES_DOTNET_TP_H_

#include <lttng/tracepoint.h>

#define SHAPE_GC_T_INSTANCE(name) \
  TRACEPOINT_EVENT_INSTANCE(      \
      shape_dotnet, gc_t, name,   \
      TP_ARGS(const unsigned int, Count, const unsigned short, ClrInstanceID))
TRACEPOINT_EVENT_CLASS(shape_dotnet, gc_t,
                       TP_ARGS(const unsigned int, Count, const unsigned short, ClrInstanceID),
                       TP_FIELDS(ctf_integer(unsigned int, Count, Count)
                                     ctf_integer(unsigned short, ClrInstanceID, ClrInstanceID)))
SHAPE_GC_T_INSTANCE(GCEnd)
SHAPE_GC_T_INSTANCE(GCRestartEEEnd)
#define SHAPE_EMPTY_T_INSTANCE(name) TRACEPOINT_EVENT_INSTANCE(shape_dotnet, empty, name, TP_ARGS())
TRACEPOINT_EVENT_CLASS(shape_dotnet, empty, TP_ARGS(), TP_FIELDS())
SHAPE_EMPTY_T_INSTANCE(Started)

TRACEPOINT_EVENT_CLASS(
    shape_dotnet, ten,
    TP_ARGS(const size_t, a1, const unsigned char*, a2, const unsigned long long, a3, const int, a4,
            const signed char, a5, const float, a6, const double, a7, const void* const, a8,
            const short, a9, const char* const, a10),
    TP_FIELDS(ctf_sequence(char, a2, a2, size_t, a1) ctf_integer(const unsigned long long, a3, a3)
                  ctf_integer(const int, a4, a4) ctf_integer(const signed char, a5, a5)
                      ctf_float(const float, a6, a6) ctf_float(const double, a7, a7)
                          ctf_integer(unsigned long, a8, (unsigned long)a8)
                              ctf_integer_network(const short, a9, a9) ctf_string(a10, a10)))
TRACEPOINT_EVENT_INSTANCE(shape_dotnet, ten, Ten,
                          TP_ARGS(const size_t, b1, const unsigned char*, b2,
                                  const unsigned long long, b3, const int, b4, const signed char,
                                  b5, const float, b6, const double, b7, const void* const, b8,
                                  const short, b9, const char* const, b10))

#endif

#include <lttng/tracepoint-event.h>
