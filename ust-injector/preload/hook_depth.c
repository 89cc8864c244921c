// SPDX-License-Identifier: Apache-2.0
// See hook_depth.h.
#include "ust-injector/preload/hook_depth.h"

#if defined(__x86_64__)

#include "ust-injector/preload/thread.h"

#define WEFT_DEPTH_THREADS 1024u
#define WEFT_DEPTH_TRIES 8u /* entries that a thread looks at for its own */

// The newest open call of each thread. A thread that finds no free entry takes another thread's:
// both then count from 0 again.
static struct {
  uint64_t thread;  // its thread pointer; 0: free
  uint32_t tid;     // a thread that ended may have left its thread pointer to another one
  uint32_t reserved;
  weft_call_id newest;
} threads[WEFT_DEPTH_THREADS];

// Returns the index of the calling thread's entry.
static uint32_t own_entry(void) {
  const uint64_t self = weft_thread_pointer();
  const uint32_t tid = weft_thread_id();
  const uint32_t first = (uint32_t)(self >> 6) * 2654435761u >> 22;
  uint32_t entry = first;
  for (uint32_t i = 0; i < WEFT_DEPTH_TRIES; ++i) {
    entry = (first + i) % WEFT_DEPTH_THREADS;
    // relaxed, here and below: the entry is the thread's own. Another thread's gives a wrong depth
    uint64_t owner = __atomic_load_n(&threads[entry].thread, __ATOMIC_RELAXED);
    if (owner == self && threads[entry].tid == tid) return entry;
    // relaxed: as above
    if (owner == self ||
        (owner == 0 && __atomic_compare_exchange_n(&threads[entry].thread, &owner, self, false,
                                                   __ATOMIC_RELAXED, __ATOMIC_RELAXED))) {
      break;
    }
  }
  __atomic_store_n(&threads[entry].thread, self, __ATOMIC_RELAXED);  // relaxed: as above
  __atomic_store_n(&threads[entry].newest, 0, __ATOMIC_RELAXED);     // relaxed: as above
  __atomic_store_n(&threads[entry].tid, tid, __ATOMIC_RELAXED);      // relaxed: as above
  return entry;
}

// The page of `slot` can be read: a call lies there.
static bool is_left(const struct weft_open_call* call, const struct weft_call_place* place,
                    const uint64_t* slot) {
  const bool one_page = ((uint64_t)(uintptr_t)place->slot ^ (uint64_t)(uintptr_t)slot) < 4096;
  return weft_hook_is_left(call->around, place, one_page);
}

struct weft_open_call weft_depth_find(const uint64_t* slot) {
  // relaxed: the thread's own
  const weft_call_id newest = __atomic_load_n(&threads[own_entry()].newest, __ATOMIC_RELAXED);
  struct weft_open_call call = {.newest = newest, .around = newest};
  struct weft_call_place place;
  while (call.around != 0) {
    if (!weft_hook_find_call(call.around, &place)) {
      call.around = 0;
      break;
    }
    // A function that jumped to this one at its end left its own stub's address.
    const bool is_open = place.slot == slot ? *slot == place.stub
                                            : place.slot > slot && !is_left(&call, &place, slot);
    if (is_open) {
      call.depth = (uint16_t)(place.depth + 1);
      break;
    }
    call.around = place.around;
  }
  return call;
}

void weft_depth_push(weft_call_id id) {
  __atomic_store_n(&threads[own_entry()].newest, id, __ATOMIC_RELAXED);  // relaxed: as above
}

void weft_depth_pop(const struct weft_open_call* call) {
  // relaxed: as above
  __atomic_store_n(&threads[own_entry()].newest, call->newest, __ATOMIC_RELAXED);
}

#endif
