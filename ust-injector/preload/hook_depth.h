// SPDX-License-Identifier: Apache-2.0
// Tells at how many open calls a hooked function is called (hooks.h). A call is open from its entry
// to its end, if its end is recorded.
//
// Each thread has the number of its newest open call, and each call that of the one around it. A
// call that was left without an end (longjmp, an exception) still is the newest one. It is
// recognised by the place of its return address, which lies below that of the next call, or holds
// another address. If that place is on another page than the next call's, it takes a system call
// to read it. A thread that runs on several stacks (coroutines) may see a depth that belongs to
// another of its stacks.
//
// Any thread, signal handlers, fork and vfork children.
#ifndef WEFT_UST_INJECTOR_PRELOAD_HOOK_DEPTH_H_
#define WEFT_UST_INJECTOR_PRELOAD_HOOK_DEPTH_H_

#include "ust-injector/preload/hook_calls.h"

#if defined(__x86_64__)

#include "ust-injector/preload/thread.h"

#define WEFT_DEPTH_THREADS 1024u
#define WEFT_DEPTH_TRIES 8u /* entries that a thread looks at for its own */

// The newest open call of a thread.
struct weft_depth {
  uint64_t thread;  // its thread pointer; 0: free
  uint32_t tid;     // a thread that ended may have left its thread pointer to another one
  uint32_t reserved;
  weft_call_id newest;
  uint64_t reserved64;
};
extern struct weft_depth weft_depths[WEFT_DEPTH_THREADS] __attribute__((visibility("hidden")));

// Returns the calling thread's entry. A thread that finds no free entry takes another thread's:
// both then count from 0 again.
struct weft_depth* weft_depth_own(void);

static inline struct weft_depth* weft_depth_entry(uint64_t thread, uint32_t i) {
  return &weft_depths[(((uint32_t)(thread >> 6) * 2654435761u >> 22) + i) % WEFT_DEPTH_THREADS];
}

// Returns the thread's depth without a system call; NULL if that needs one, or there is none yet.
static inline struct weft_depth* weft_depth_known(void) {
  const uint64_t self = weft_thread_pointer();
  const uint32_t tid = weft_thread_id_known();
  for (uint32_t i = 0; i < WEFT_DEPTH_TRIES; ++i) {
    struct weft_depth* entry = weft_depth_entry(self, i);
    // relaxed: the entry is the thread's own. Another thread's gives a wrong depth
    if (__atomic_load_n(&entry->thread, __ATOMIC_RELAXED) == self)
      return tid != 0 && entry->tid == tid ? entry : NULL;
  }
  return NULL;
}

enum weft_depth_answer { WEFT_DEPTH_OPEN, WEFT_DEPTH_LEFT, WEFT_DEPTH_ASK };

// Is `call` around one whose return address lies in `slot`? The page of `slot` can be read: a call
// lies there.
static inline enum weft_depth_answer weft_depth_look(const struct weft_hook_call* call,
                                                     uint32_t number, const uint64_t* slot) {
  // A function that jumped to this one at its end left its own stub's address.
  if (call->slot == slot)
    return *slot == weft_stub_return(number) ? WEFT_DEPTH_OPEN : WEFT_DEPTH_LEFT;
  if (call->slot < slot) return WEFT_DEPTH_LEFT;
  if (((uint64_t)(uintptr_t)call->slot ^ (uint64_t)(uintptr_t)slot) >= 4096) return WEFT_DEPTH_ASK;
  return weft_call_is_left(*call->slot, call->slot, number) ? WEFT_DEPTH_LEFT : WEFT_DEPTH_OPEN;
}

// Finds the place of a call whose return address lies in `slot`. False: it takes a system call, and
// `may_ask` does not allow it.
static inline bool weft_depth_find(const struct weft_depth* thread, const uint64_t* slot,
                                   bool may_ask, struct weft_open_call* open) {
  // relaxed: the thread's own
  const weft_call_id newest = __atomic_load_n(&thread->newest, __ATOMIC_RELAXED);
  *open = (struct weft_open_call){.newest = newest, .around = newest};
  while (open->around != 0) {
    const uint32_t number = weft_call_number(open->around);
    const struct weft_hook_call* call = &weft_hook_calls[number];
    // acquire: pairs with the release that published the call
    if (weft_call_id_of(number, __atomic_load_n(&call->turn, __ATOMIC_ACQUIRE)) != open->around) {
      open->around = 0;
      break;
    }
    enum weft_depth_answer answer = weft_depth_look(call, number, slot);
    if (answer == WEFT_DEPTH_ASK) {
      if (!may_ask) return false;
      answer = weft_call_is_lost(number) ? WEFT_DEPTH_LEFT : WEFT_DEPTH_OPEN;
    }
    if (answer == WEFT_DEPTH_OPEN) {
      open->depth = (uint16_t)(call->open.depth + 1);
      break;
    }
    open->around = call->open.around;
  }
  return true;
}

// The thread's newest call from now on.
static inline void weft_depth_set(struct weft_depth* thread, weft_call_id newest) {
  __atomic_store_n(&thread->newest, newest, __ATOMIC_RELAXED);  // relaxed: as above
}

#endif

#endif  // WEFT_UST_INJECTOR_PRELOAD_HOOK_DEPTH_H_
