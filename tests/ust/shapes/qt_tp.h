/* SPDX-License-Identifier: Apache-2.0 */
/* Qt's generator: inline functions in a namespace around tracepoint(), do_tracepoint() and
 * tracepoint_enabled(); enumerations with ranges and flags; classes with several instances. */
#undef TRACEPOINT_PROVIDER
#define TRACEPOINT_PROVIDER shape_qt

#undef TRACEPOINT_INCLUDE
#define TRACEPOINT_INCLUDE "shapes/qt_tp.h"

#if !defined(SHAPES_QT_TP_H_) || defined(TRACEPOINT_HEADER_MULTI_READ)
#define SHAPES_QT_TP_H_

#include <lttng/tracepoint.h>

#ifndef SHAPES_QT_TYPES
#define SHAPES_QT_TYPES
struct ShapeObject {
  const char* name;
};
struct ShapeWindow {
  const char* name;
};
struct ShapeSize {
  int width, height;
};
enum ShapeState { ShapeNone = 0, ShapeActive = 0x8, ShapeTop = 0x70000000 };
#endif

TRACEPOINT_ENUM(shape_qt, ShapeState,
                TP_ENUM_VALUES(ctf_enum_value("ShapeNone", ShapeNone)
                                   ctf_enum_range("Between", 1, 7)
                                       ctf_enum_value("ShapeActive", ShapeActive)
                                           ctf_enum_value("ShapeTop", ShapeTop)))

TRACEPOINT_EVENT_INSTANCE(shape_qt, sized, resize,
                          TP_ARGS(const struct ShapeWindow*, it, struct ShapeSize, size))
TRACEPOINT_EVENT_CLASS(shape_qt, sized,
                       TP_ARGS(const struct ShapeObject*, object, struct ShapeSize, size),
                       TP_FIELDS(ctf_string(name, object->name ? object->name : "null")
                                     ctf_integer(int, size_width, size.width)
                                         ctf_integer(int, size_height, size.height)))
TRACEPOINT_EVENT_INSTANCE(shape_qt, sized, move,
                          TP_ARGS(const struct ShapeObject*, object, struct ShapeSize, size))

TRACEPOINT_EVENT(shape_qt, state,
                 TP_ARGS(const void*, receiver, enum ShapeState, state, double, opacity),
                 TP_FIELDS(ctf_integer_hex(const void*, receiver, receiver)
                               ctf_enum(shape_qt, ShapeState, int, state, state)
                                   ctf_float(double, opacity, opacity)))

#endif

#include <lttng/tracepoint-event.h>
