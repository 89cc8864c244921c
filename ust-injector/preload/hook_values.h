// SPDX-License-Identifier: Apache-2.0
// Reads the values of one call of a hooked function (lib/abi/hooks.h): numbers from registers and
// the stack; texts, bytes and members from the program's memory. Addresses are the program's: they
// may be wrong, and another thread may unmap what they point to. So memory is read by system calls
// that fail where a load would fault (peek.h).
//
// Any thread, signal handlers, fork and vfork children. The caller owns what it passes.
#ifndef WEFT_UST_INJECTOR_PRELOAD_HOOK_VALUES_H_
#define WEFT_UST_INJECTOR_PRELOAD_HOOK_VALUES_H_

#include <stdbool.h>
#include <stdint.h>

#include "ust-injector/preload/hooks_asm.h"

#if defined(__x86_64__)

// What one call has of the program's memory, and where each piece lies. It is not moved while a
// segment is in use: see weft_hook_keep.
struct weft_hook_pieces {
  struct weft_segment segments[WEFT_HOOK_MAX_VALUES + 1];  // arguments; result; late values
  uint32_t count;
  uint32_t bytes;   // used of `memory`
  uint16_t faults;  // values that could not be read
  // Addresses at the entry, for values that are read at the exit.
  uint64_t addresses[WEFT_HOOK_MAX_VALUES];
  char memory[WEFT_HOOK_TEXT_BYTES + 16];  // peek copies whole words
};

void weft_hook_no_pieces(struct weft_hook_pieces* pieces);

// Writes the arguments of the entry. Returns what is behind them.
uint8_t* weft_hook_put_arguments(const struct weft_hook_registers* registers,
                                 const struct weft_hook* hook, uint8_t* to,
                                 struct weft_hook_pieces* pieces);
// Writes the return value and the late values, of a function that returned.
uint8_t* weft_hook_put_results(const struct weft_hook_registers* registers,
                               const struct weft_hook* hook, uint8_t* to,
                               struct weft_hook_pieces* pieces);
// Copies pieces to where they stay until the call ends.
void weft_hook_keep(struct weft_hook_pieces* to, const struct weft_hook_pieces* from);

#endif

#endif  // WEFT_UST_INJECTOR_PRELOAD_HOOK_VALUES_H_
