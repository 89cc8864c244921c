// SPDX-License-Identifier: Apache-2.0
// See process.h.
#include "ust-injector/preload/process.h"

struct weft_process weft_process;
struct weft_anchor* weft_anchor;

uint32_t weft_generation(void) {
  static uint32_t last;  // a fork child goes on counting
  uint32_t known = 0;
  // relaxed: it orders nothing
  const uint32_t mine = __atomic_load_n(&weft_anchor->generation, __ATOMIC_RELAXED);
  if (mine != 0) return mine;
  // relaxed: as above
  const uint32_t next = __atomic_add_fetch(&last, 1, __ATOMIC_RELAXED);
  return __atomic_compare_exchange_n(&weft_anchor->generation, &known, next, false,
                                     __ATOMIC_RELAXED, __ATOMIC_RELAXED)
             ? next
             : known;
}
