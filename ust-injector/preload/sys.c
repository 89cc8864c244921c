// SPDX-License-Identifier: Apache-2.0
// See sys.h. All of it is in the header, except for the switch that turns every call off.
#include "ust-injector/preload/sys.h"

uint32_t weft_silent;
