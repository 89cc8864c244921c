/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Emits each event of providers with the shapes of real programs (shapes/) once. It is built as C
 * and as C++. builds_test.py compiles it with every warning that LTTng's headers pass.
 */
#include <lttng/tracef.h>
#include <lttng/tracelog.h>

#define TRACEPOINT_DEFINE
#define TRACEPOINT_CREATE_PROBES
#include "shapes/agent_tp.h"
#include "shapes/ceph_tp.h"
#include "shapes/dotnet_tp.h"
#include "shapes/plugin_tp.h"
#include "shapes/qemu_tp.h"
#include "shapes/qt_tp.h"
#include "shapes/ros_tp.h"
#include "shapes/template_tp.h"
#include "shapes/thapi_tp.h"
/* Last: it has the long names, which the other headers do not take back. */
#include "shapes/profile_tp.h"

#define ROS(...) tracepoint(TRACEPOINT_PROVIDER_OF_ROS, __VA_ARGS__)
#define TRACEPOINT_PROVIDER_OF_ROS shape_ros
#define NAME_OF_EVENT shutdown

static void emit_ros(void) {
  static const uint8_t gid[4] = {1, 2, 3, 4};
  ROS(context_init, &gid);
  ROS(publisher_init, gid, "topic", 4, gid, true, -1);
  ROS(shutdown);
  tracepoint(TRACEPOINT_PROVIDER_OF_ROS, NAME_OF_EVENT);
}

#ifdef __cplusplus
namespace shape_private {
#endif
static inline bool trace_state_enabled(void) { return tracepoint_enabled(shape_qt, state); }
static inline void trace_state(const void* receiver, enum ShapeState state, double opacity) {
  tracepoint(shape_qt, state, receiver, state, opacity);
}
static inline void do_trace_state(const void* receiver, enum ShapeState state, double opacity) {
  do_tracepoint(shape_qt, state, receiver, state, opacity);
}

static void emit_qt(void) {
  static const struct ShapeObject object = {"object"};
  static const struct ShapeWindow window = {"window"};
  struct ShapeSize size = {640, 480};
  tracepoint(shape_qt, resize, &window, size);
  tracepoint(shape_qt, move, &object, size);
  trace_state(&object, ShapeActive, 0.5);
  if (trace_state_enabled()) do_trace_state(&window, ShapeTop, 1);
}
#ifdef __cplusplus
}  // namespace shape_private
using shape_private::emit_qt;
#endif

static void emit_ceph(void) {
  struct timespec stamp = {12, 34};
  tracepoint(shape_ceph, write_enter, &stamp, "object", "bytes", 5, 4096, stamp);
  tracepoint(shape_ceph, write_enter, NULL, NULL, NULL, 7, 0, stamp);
  tracepoint(shape_ceph, write_exit, -2);
}

static void emit_dotnet(void) {
  static const unsigned char bytes[3] = {7, 8, 9};
  tracepoint(shape_dotnet, GCEnd, 1, 2);
  tracepoint(shape_dotnet, GCRestartEEEnd, 3, 4);
  tracepoint(shape_dotnet, Started);
  tracepoint(shape_dotnet, Ten, 3, bytes, 1ull << 63, -4, -5, 0.5f, 0.25, NULL, -9, "ten");
}

static void emit_qemu(void) {
  static int state;
  tracepoint(shape_qemu, bdrv_open, &state, "disk.img", 2, "raw");
  if (tracepoint_enabled(shape_qemu, handle_io)) {
    tracepoint(shape_qemu, handle_io, 255, 65535, 4294967295u, 1ull << 63, -128, -32768, 7, -1);
  }
}

static void emit_api(void) {
  static shape_platform_id platforms[2];
  static const shape_uuid uuid = {{0xa, 0xb}};
  memset(platforms, 1, sizeof(platforms));
  tracepoint(shape_api, get_platforms_start, 2, platforms, NULL, 1ull << 40, &uuid, NULL);
  tracepoint(shape_api, get_platforms_stop, 0x80000005, INT64_MIN, -127);
  tracepoint(shape_api, get_platforms_stop, 0xffffffff, 0x200000000, 127);
  tracepoint(shape_api, get_platforms_stop, 0, INT64_MAX, -128);
  tracepoint(shape_api, get_platforms_stop, 0x70000001, -3, 0);
}

static void emit_rest(void) {
  static long values[3] = {1, 2, 3};
  static char text[10] = "test";
  static const struct shape_call call = {5, 1, "caller", {0xde, 0xad}, {80, 443}, {"one", "two"}};
  tracepoint(shape_agent, log_DEBUG, "a message", "logger", 42, 17L);
  tracepoint(shape_agent, log_WARNING, "another", "logger", 43, 18L);
  tracepoint(shape_template, tptest, 1, 2, values, text, 4, 2.5, 1.25f);
  tracepoint(shape_plugin, call, &call, 3, 9, 'x');
  lttng_ust_tracepoint(shape_profile, func_entry, &values, &text);
  lttng_ust_tracepoint(shape_profile, malloc, 100, &values, &text);
  tracef("%d of %s", 3, "four");
  tracef("plain");
  tracelog(LTTNG_UST_TRACEPOINT_LOGLEVEL_WARNING, "%s", "careful");
  tracelog(LTTNG_UST_TRACEPOINT_LOGLEVEL_INFO, "plain");
}

int main(void) {
  emit_ros();
  emit_qt();
  emit_ceph();
  emit_dotnet();
  emit_qemu();
  emit_api();
  emit_rest();
  return 0;
}
