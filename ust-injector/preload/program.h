// SPDX-License-Identifier: Apache-2.0
// libweft.so's functions as programs get them, and how the executable gets them before its
// constructors run (struct weft_library and WEFT_NOTE_OBJECT in lib/abi/tracepoint.h).
#ifndef WEFT_UST_INJECTOR_PRELOAD_PROGRAM_H_
#define WEFT_UST_INJECTOR_PRELOAD_PROGRAM_H_

#include "lib/abi/tracepoint.h"

extern const struct weft_library weft_library;

#endif  // WEFT_UST_INJECTOR_PRELOAD_PROGRAM_H_
