/* SPDX-License-Identifier: Apache-2.0 */
/* QEMU's generator: one header of many events, integers of every size, the include
 * file named with a folder. */
#undef TRACEPOINT_PROVIDER
#define TRACEPOINT_PROVIDER shape_qemu

#undef TRACEPOINT_INCLUDE
#define TRACEPOINT_INCLUDE "./shapes/qemu_tp.h"

#if !defined(SHAPES_QEMU_TP_H_) || defined(TRACEPOINT_HEADER_MULTI_READ)
#define SHAPES_QEMU_TP_H_

#include <lttng/tracepoint.h>
#include <stdint.h>

TRACEPOINT_EVENT(shape_qemu, bdrv_open,
                 TP_ARGS(void*, bs, const char*, filename, int, flags, const char*, format_name),
                 TP_FIELDS(ctf_integer_hex(void*, bs, bs) ctf_string(filename, filename)
                               ctf_integer(int, flags, flags) ctf_string(format_name, format_name)))
TRACEPOINT_EVENT(shape_qemu, handle_io,
                 TP_ARGS(uint8_t, a, uint16_t, b, uint32_t, c, uint64_t, d, int8_t, e, int16_t, f,
                         unsigned, g, ssize_t, h),
                 TP_FIELDS(ctf_integer(uint8_t, a, a) ctf_integer(uint16_t, b, b)
                               ctf_integer(uint32_t, c, c) ctf_integer(uint64_t, d, d)
                                   ctf_integer(int8_t, e, e) ctf_integer(int16_t, f, f)
                                       ctf_integer(unsigned, g, g) ctf_integer(ssize_t, h, h)))

#endif /* SHAPES_QEMU_TP_H_ */

#include <lttng/tracepoint-event.h>
