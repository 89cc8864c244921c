// SPDX-License-Identifier: Apache-2.0
// What hooks_asm.c shares with the C of hooks (hooks.h): stubs, and the registers of a call.
#ifndef WEFT_UST_INJECTOR_PRELOAD_HOOKS_ASM_H_
#define WEFT_UST_INJECTOR_PRELOAD_HOOKS_ASM_H_

#include "lib/abi/hooks.h"

#if defined(__x86_64__)

#define WEFT_HOOK_PAGES 16u
#define WEFT_HOOK_STUBS_PER_PAGE (4096u / WEFT_HOOK_STUB_BYTES) /* the first is no stub */
_Static_assert(WEFT_HOOK_STUBS == WEFT_HOOK_PAGES * WEFT_HOOK_STUBS_PER_PAGE, "all pages");

// Registers of the moment of the call or return, as hooks_asm.c saves them, in the stack. At an
// entry, behind them lie the hook's address, the return address and the arguments on the stack.
struct weft_hook_registers {
  uint64_t floating[8];  // xmm0 to xmm7, as many as the hook says, at least one
  uint64_t general[6];   // rdi rsi rdx rcx r8 r9
  uint64_t rax, r10, r11;
};

// Stands in each page of stubs, where other code has instructions. It is what DW_OP_const4s pushes.
#define WEFT_HOOK_PAGE_MARK 0x63b5d94e

extern const uint8_t weft_hook_stubs[] __attribute__((visibility("hidden")));

// Where thunks go.
void weft_hook_entry(void) __attribute__((visibility("hidden")));

// Calls a function that uses vector registers, which it saves.
typedef void weft_hook_slow_fn(void);
uint64_t weft_hook_call_slowly(weft_hook_slow_fn* function, const void* first, const void* second,
                               const void* third, const void* fourth)
    __attribute__((visibility("hidden")));

static inline uint64_t* weft_hook_slot(const struct weft_hook_registers* registers) {
  return (uint64_t*)(uintptr_t)(registers + 1) + 1;
}

static inline uint64_t weft_hook_value_of(const struct weft_hook_registers* registers,
                                          const struct weft_hook_value* v) {
  // Number of the first word of each source, counted from `registers`.
  static const uint8_t words[8] = {
      [WEFT_HOOK_GENERAL] = 8, [WEFT_HOOK_STACK] = 19, [WEFT_HOOK_RESULT] = 14};
  return ((const uint64_t*)registers)[words[v->source % 8] + v->index];
}

static inline uint8_t* weft_hook_put(uint8_t* to, uint64_t value, uint32_t size) {
  __builtin_memcpy(to, &value, sizeof(value));
  return to + size;
}

// What an event has: arguments; result, duration, faults, depth, unwound. Emit reads a multiple of
// 8 bytes.
#define WEFT_HOOK_IMAGE_WORDS (WEFT_HOOK_MAX_VALUES + 4)

#endif

#endif  // WEFT_UST_INJECTOR_PRELOAD_HOOKS_ASM_H_
