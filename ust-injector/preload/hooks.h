// SPDX-License-Identifier: Apache-2.0
// Records entries and exits of functions that the agent hooked (lib/abi/hooks.h). x86-64 only.
//
//   start   If functions are recorded, makes the areas and waits for the agent (L1).
//   enter   A hooked function is called. If its exit is recorded, takes a free call, keeps the
//           return address in it, and sends the thread to the call's stub (hooks_asm.c).
//   leave   The stub's call returned.
//
// hook_calls.h has the calls, hook_depth.h their depth. If no call is free, the exit is not
// recorded and counts as discarded (memory).
//
// A call of a hooked function takes little more than the two reads of the clock. Most of them take
// the way of hook_fast.c, which uses no vector registers, so that none is saved; hook_slow.c does
// all.
//
// enter and leave run in any thread, in signal handlers, in fork and vfork children.
#ifndef WEFT_UST_INJECTOR_PRELOAD_HOOKS_H_
#define WEFT_UST_INJECTOR_PRELOAD_HOOKS_H_

#include "lib/abi/hooks.h"

#if defined(__x86_64__)
// An agent finds it in the table of symbols.
extern struct weft_hooks weft_hooks __attribute__((visibility("default")));
#endif

// Called once, when the library has started.
void weft_hooks_start(void);
// Decides all events of hooks that are on, and makes what calls need: later no system call may be
// made.
void weft_hooks_make_everything(void);

#endif  // WEFT_UST_INJECTOR_PRELOAD_HOOKS_H_
