/* SPDX-License-Identifier: Apache-2.0 */
/* For programs written for LTTng-UST: <weft/tracepoint-event.h> under LTTng's name. */
#include <weft/tracepoint-event.h>
