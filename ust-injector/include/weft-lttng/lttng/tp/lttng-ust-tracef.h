/* SPDX-License-Identifier: Apache-2.0 */
/* For programs written for LTTng-UST: <weft/tracef.h> under LTTng's name. */
#include <weft/tracef.h>
