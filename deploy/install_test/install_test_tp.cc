// SPDX-License-Identifier: Apache-2.0
// The one file that has the tracepoint of weft-install-test and its probe.
#define TRACEPOINT_CREATE_PROBES
#define TRACEPOINT_DEFINE
#include "deploy/install_test/install_test_tp.h"
