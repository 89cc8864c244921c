// SPDX-License-Identifier: Apache-2.0
// The way of all calls of hooked functions that do not take the one of hook_fast.h: texts and
// members, whole calls, filters and contexts, calls that are unwound. It uses vector registers;
// what is compiled without them comes here by weft_hook_call_slowly.
//
// Any thread, signal handlers, fork and vfork children.
#ifndef WEFT_UST_INJECTOR_PRELOAD_HOOK_SLOW_H_
#define WEFT_UST_INJECTOR_PRELOAD_HOOK_SLOW_H_

#if defined(__x86_64__)

#include "ust-injector/preload/hooks_asm.h"

// These two do what weft_hook_enter and weft_hook_leave do, for every hook.
const void* weft_hook_enter_slowly(const struct weft_hook_registers* registers,
                                   struct weft_hook* hook) __attribute__((visibility("hidden")));
uint64_t weft_hook_leave_slowly(const struct weft_hook_registers* registers, uint64_t number)
    __attribute__((visibility("hidden")));
// Records the entry alone, of a function of Go. `registers` end with r11; the depth is 0.
void weft_hook_enter_only(const struct weft_hook_registers* registers, struct weft_hook* hook)
    __attribute__((visibility("hidden")));

// Called by the program's unwinder for the frame of a stub (hooks_asm.c), as the Itanium C++ ABI
// says (Exception Handling, 1.6.2): the function of its call is being left.
int weft_hook_personality(int version, int actions, uint64_t exception_class, void* exception,
                          void* context) __attribute__((visibility("hidden")));

// Decides the hook's events that are on, and makes what their calls need.
void weft_hook_decide(const struct weft_hook* hook);

#endif

#endif  // WEFT_UST_INJECTOR_PRELOAD_HOOK_SLOW_H_
