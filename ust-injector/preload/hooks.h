// SPDX-License-Identifier: Apache-2.0
// Records entries and exits of functions that the agent hooked (lib/abi/hooks.h). x86-64 only.
//
//   start   If functions are recorded, makes the areas and waits for the agent (L1).
//   enter   A hooked function is called. If its exit is recorded, takes a free call, keeps the
//           return address in it, and sends the thread to the call's stub (hooks_asm.c).
//   leave   The stub's call returned.
//
// Calls are free or taken, in lists, not in a stack: a thread may switch to another stack inside a
// function (coroutines). A call is lost when its function is left without a return (longjmp, an
// exception, the end of the thread). When no call is free, those are collected whose return
// address was overwritten, or whose stack is gone. If that frees none, the exit is not recorded
// and counts as discarded (memory).
//
// enter and leave run in any thread, in signal handlers, in fork and vfork children.
#ifndef WEFT_UST_INJECTOR_PRELOAD_HOOKS_H_
#define WEFT_UST_INJECTOR_PRELOAD_HOOKS_H_

#include "lib/abi/hooks.h"

// Called once, when the library has started.
void weft_hooks_start(void);

#if defined(__x86_64__)

#define WEFT_HOOK_PAGES 16u
#define WEFT_HOOK_STUB_BYTES 16u
#define WEFT_HOOK_STUBS_PER_PAGE (4096u / WEFT_HOOK_STUB_BYTES) /* the first is no stub */
#define WEFT_HOOK_STUBS (WEFT_HOOK_PAGES * WEFT_HOOK_STUBS_PER_PAGE)

// Registers of the moment of the call or return, as hooks_asm.c saves them.
struct weft_hook_registers {
  uint64_t general[6];  // rdi rsi rdx rcx r8 r9
  uint64_t rax, r10, r11, reserved;
  uint64_t floating[16][2];
};

// What a stub reads: it lies at the stub's own distance from the begin of its table.
struct weft_hook_stub_data {
  uint64_t returns_to;  // the caller
  uint64_t calls;       // the function's displaced instructions
};

extern struct weft_hook_stub_data weft_hook_stub_data[WEFT_HOOK_STUBS]
    __attribute__((visibility("hidden")));
extern const uint8_t weft_hook_stubs[] __attribute__((visibility("hidden")));

// Where thunks go; in hooks_asm.c.
void weft_hook_entry(void) __attribute__((visibility("hidden")));

// Returns the stub to go to; NULL: the thread goes on in the thunk. `slot`: where the return
// address lies.
const void* weft_hook_enter(const struct weft_hook_registers* registers, struct weft_hook* hook,
                            uint64_t* slot) __attribute__((visibility("hidden")));
// Returns the address that the function would have returned to.
uint64_t weft_hook_leave(const struct weft_hook_registers* registers, uint64_t index)
    __attribute__((visibility("hidden")));

#endif

#endif  // WEFT_UST_INJECTOR_PRELOAD_HOOKS_H_
