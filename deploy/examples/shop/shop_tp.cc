// SPDX-License-Identifier: Apache-2.0
// The one file that has the shop's tracepoints and their probes.
#define TRACEPOINT_CREATE_PROBES
#define TRACEPOINT_DEFINE
#include "deploy/examples/shop/shop_tp.h"
