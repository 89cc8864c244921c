/* SPDX-License-Identifier: Apache-2.0 */
#define LTTNG_UST_TRACEPOINT_CREATE_PROBES
#ifdef EVERY_IP_SHORT
#define TP_IP_PARAM (void*)where
#else
#define LTTNG_UST_TP_IP_PARAM (void*)where
#endif
#include "./every_ip_tp.h"
