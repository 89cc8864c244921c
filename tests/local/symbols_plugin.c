/* SPDX-License-Identifier: Apache-2.0 */
/* An object with tracepoints. symbols.c loads it while it runs. */
#define TRACEPOINT_CREATE_PROBES
#define TRACEPOINT_DEFINE
#include "tests/local/symbols_plugin_tp.h"

__attribute__((visibility("default"))) void plugin_emits(const char* where);
void plugin_emits(const char* where) {
  tracepoint(plugin, here, where);
  __asm__ volatile("");
}
