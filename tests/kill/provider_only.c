// SPDX-License-Identifier: Apache-2.0
// Probes for the worker's call sites of stress:provided.
#define LTTNG_UST_TRACEPOINT_CREATE_PROBES
#include "tests/kill/plugin_provider.h"
