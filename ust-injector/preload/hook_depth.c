// SPDX-License-Identifier: Apache-2.0
// See hook_depth.h.
#include "ust-injector/preload/hook_depth.h"

#if defined(__x86_64__)

struct weft_depth weft_depths[WEFT_DEPTH_THREADS] __attribute__((aligned(64)));

struct weft_depth* weft_depth_own(void) {
  const uint64_t self = weft_thread_pointer();
  const uint32_t tid = weft_thread_id();
  struct weft_depth* entry = NULL;
  for (uint32_t i = 0; i < WEFT_DEPTH_TRIES; ++i) {
    entry = weft_depth_entry(self, i);
    // relaxed, here and below: the entry is the thread's own. Another thread's gives a wrong depth
    uint64_t owner = __atomic_load_n(&entry->thread, __ATOMIC_RELAXED);
    if (owner == self && entry->tid == tid) return entry;
    // relaxed: as above
    if (owner == self ||
        (owner == 0 && __atomic_compare_exchange_n(&entry->thread, &owner, self, false,
                                                   __ATOMIC_RELAXED, __ATOMIC_RELAXED))) {
      break;
    }
  }
  __atomic_store_n(&entry->thread, self, __ATOMIC_RELAXED);  // relaxed: as above
  __atomic_store_n(&entry->newest, 0, __ATOMIC_RELAXED);     // relaxed: as above
  __atomic_store_n(&entry->tid, tid, __ATOMIC_RELAXED);      // relaxed: as above
  return entry;
}

#endif
