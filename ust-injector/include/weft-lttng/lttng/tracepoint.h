/* SPDX-License-Identifier: Apache-2.0 */
/* For programs written for LTTng-UST: <weft/tracepoint.h> under LTTng's name. */
#include <weft/tracepoint.h>
