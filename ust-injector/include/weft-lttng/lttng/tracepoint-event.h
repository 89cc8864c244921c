/* SPDX-License-Identifier: Apache-2.0 */
/* Gives programs written for LTTng-UST <weft/tracepoint-event.h> under LTTng's name. It includes
 * the system's headers that LTTng's includes, since programs rely on them. */
#pragma GCC system_header
#include <errno.h>
#include <float.h>
#include <limits.h>
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>

#include "../../weft/tracepoint-event.h"
