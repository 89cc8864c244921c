// SPDX-License-Identifier: Apache-2.0
// The way that most calls of hooked functions take (hooks.h): numbers, entry and exit, a thread
// that was seen before. An event without filter and context is recorded here. Everything else goes
// to hook_slow.h. hooks_asm.c calls both functions, with the vector registers as the program left
// them.
//
// Any thread, signal handlers, fork and vfork children.
#ifndef WEFT_UST_INJECTOR_PRELOAD_HOOK_FAST_H_
#define WEFT_UST_INJECTOR_PRELOAD_HOOK_FAST_H_

#if defined(__x86_64__)

#include "ust-injector/preload/hooks_asm.h"

// Returns the stub to go to; NULL: the thread goes on in the thunk.
const void* weft_hook_enter(const struct weft_hook_registers* registers, struct weft_hook* hook)
    __attribute__((visibility("hidden")));
// Returns the address that the function would have returned to.
uint64_t weft_hook_leave(const struct weft_hook_registers* registers, uint64_t number)
    __attribute__((visibility("hidden")));

#endif

#endif  // WEFT_UST_INJECTOR_PRELOAD_HOOK_FAST_H_
