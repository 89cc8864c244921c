/* SPDX-License-Identifier: Apache-2.0 */
/* A shared object with a provider and its own call site. */
#define TRACEPOINT_DEFINE
#define TRACEPOINT_CREATE_PROBES
#include "provider_tp.h"

__attribute__((visibility("default"))) void plugin_hit(int number) {
  tracepoint(matrix, plugin, number, "from the plugin");
}
