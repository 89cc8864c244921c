/* SPDX-License-Identifier: Apache-2.0 */
/* Gives programs written for LTTng-UST <weft/tracelog.h> under LTTng's name. */
#pragma GCC system_header
#include "../../weft/tracelog.h"
