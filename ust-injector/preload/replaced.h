// SPDX-License-Identifier: Apache-2.0
// Functions that stand in the place of those of a program's C library, if an agent loaded
// libweft.so into the running program (lib/abi/hooks.h, A4): a preloaded library does it by its
// place in the order of libraries, and ld.so tells unwinders where it is.
//
// They run in any thread, in signal handlers, and in children that share the program's memory. They
// use neither thread-local memory nor restartable sequences.
#ifndef WEFT_UST_INJECTOR_PRELOAD_REPLACED_H_
#define WEFT_UST_INJECTOR_PRELOAD_REPLACED_H_

// Fills in the replacements of weft_hooks (hooks.h). An agent takes a library that it loaded, and
// that has none, for one whose load broke off. Called once, before weft_hooks_start.
#if defined(__x86_64__)
void weft_replaced_start(void);
#else
static inline void weft_replaced_start(void) {}
#endif

#endif  // WEFT_UST_INJECTOR_PRELOAD_REPLACED_H_
