// SPDX-License-Identifier: Apache-2.0
// Lends memory for a moment: for copies of long field values while a probe makes an image
// (docs/adr/0024), and of application contexts' texts while a filter runs. Any thread, signal
// handlers, fork and vfork children. It takes no lock, and makes no system call once a block of
// that size was used before.
#ifndef WEFT_UST_INJECTOR_PRELOAD_KEEP_H_
#define WEFT_UST_INJECTOR_PRELOAD_KEEP_H_

#include <stdbool.h>
#include <stdint.h>

#include "lib/abi/tracepoint.h"

// Returns `size` bytes, aligned to 16, that belong to the list `*kept` (NULL: an empty one) until
// weft_release; NULL: no memory. `may_own`: no other thread has this one's thread pointer.
void* weft_keep_bytes(struct weft_kept** kept, uint64_t size, bool may_own);

// Returns about how many bytes the list has lent.
uint64_t weft_kept_bytes(const struct weft_kept* kept);

// This is the member of struct weft_library.
void weft_release(struct weft_kept* kept);

// Makes one block now: later no system call may be made.
void weft_keep_reserve(void);

#endif  // WEFT_UST_INJECTOR_PRELOAD_KEEP_H_
