/* SPDX-License-Identifier: Apache-2.0 */
/* A shared object with the probes only; the call sites are in the program. */
#define TRACEPOINT_CREATE_PROBES
#include "provider_tp.h"
