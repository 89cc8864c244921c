/* SPDX-License-Identifier: Apache-2.0 */
/* Gives programs written for LTTng-UST <weft/tracepoint.h> under LTTng's name. It includes the
 * system's headers that LTTng's includes, since programs rely on them. */
#pragma GCC system_header
#include <dlfcn.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>
#include <unistd.h>

#include "../../weft/tracepoint.h"
