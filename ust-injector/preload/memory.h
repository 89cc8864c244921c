// SPDX-License-Identifier: Apache-2.0
// Memory of libweft.so itself, from the kernel: the program's malloc is never called.
//
// Allocations are never given back: what they hold is published to threads that may read it at any
// later time. All functions are called under weft_lock, or at start-up on the only thread.
#ifndef WEFT_UST_INJECTOR_PRELOAD_MEMORY_H_
#define WEFT_UST_INJECTOR_PRELOAD_MEMORY_H_

#include <stdbool.h>
#include <stdint.h>

// Returns `size` bytes, zeroed, aligned to 16; NULL: none. Use it for small objects: they share
// mappings.
void* weft_allocate(uint64_t size);

// Returns `size` zeroed bytes in pages of their own, which a fork child finds zeroed again; NULL:
// none.
void* weft_allocate_wiped_on_fork(uint64_t size);

// Reserves memory for later calls of weft_allocate, when the kernel gives no more.
void weft_reserve_memory(void);

// Makes a fork child find zeroes in these pages. False: Linux < 4.14, or a filter denies the call.
bool weft_wipe_on_fork(void* pages, uint64_t size);

#endif  // WEFT_UST_INJECTOR_PRELOAD_MEMORY_H_
