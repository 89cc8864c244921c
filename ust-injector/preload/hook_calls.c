// SPDX-License-Identifier: Apache-2.0
// See hook_calls.h.
#include "ust-injector/preload/hook_calls.h"

#if defined(__x86_64__)

#include <linux/mman.h>

#include "ust-injector/preload/clock.h"
#include "ust-injector/preload/seccomp.h"

#define WEFT_CALL_LISTS 16u
// Looking at all taken calls takes milliseconds. If it frees fewer than WEFT_COLLECT_FEW, the next
// WEFT_COLLECT_PAUSE calls that find none free go without.
#define WEFT_COLLECT_FEW 64u
#define WEFT_COLLECT_PAUSE 1024u
#define WEFT_LONGEST_JUMPS 64u  // from function to function, that are followed

struct weft_hook_stub_data weft_hook_stub_data[WEFT_HOOK_STUBS] __attribute__((aligned(4096)));
struct weft_hook_call* weft_hook_calls;
struct weft_call_cache weft_call_caches[WEFT_CALL_CACHES] __attribute__((aligned(64)));

// Free calls: a number and, above it, a count of changes, so that a list is not taken for unchanged
// when its first call went and came back. Threads use different lists. Each on a cache line.
static struct {
  uint64_t head;
  uint64_t reserved[7];
} lists[WEFT_CALL_LISTS] __attribute__((aligned(64)));
static uint32_t used;     // calls from here on were never taken
static uint32_t to_pass;  // calls that find none free, and do not collect

void weft_calls_tell(struct weft_hook_places* places) {
  places->calls = (uintptr_t)&weft_hook_calls;
  places->calls_used = (uintptr_t)&used;
  places->call_bytes = sizeof(struct weft_hook_call);
  places->stubs = weft_stub_of(0);
  places->stub_data = (uintptr_t)weft_hook_stub_data;
}

static uint32_t own_list(void) {
  return ((uint32_t)(weft_thread_pointer() >> 12) * 2654435761u >> 16) % WEFT_CALL_LISTS;
}

// The first place of each page of stubs is no stub.
static bool is_stub(uint32_t number) { return number % WEFT_HOOK_STUBS_PER_PAGE != 0; }

static uint32_t take_from(uint32_t list) {
  // acquire: `next` of the call was written before the call was put into the list
  uint64_t head = __atomic_load_n(&lists[list].head, __ATOMIC_ACQUIRE);
  while ((uint32_t)head != 0) {
    // relaxed: if another thread took the call meanwhile, the head differs below
    const uint64_t next = __atomic_load_n(&weft_hook_calls[(uint32_t)head].next, __ATOMIC_RELAXED);
    const uint64_t after = ((head >> 32) + 1) << 32 | next;
    // acquire: as above, for the call that is taken and for the next try
    if (__atomic_compare_exchange_n(&lists[list].head, &head, after, false, __ATOMIC_ACQUIRE,
                                    __ATOMIC_ACQUIRE)) {
      break;
    }
  }
  return (uint32_t)head;
}

uint32_t weft_call_take_listed(void) { return take_from(own_list()); }

void weft_call_give_back(uint32_t number) {
  const uint32_t list = own_list();
  // relaxed: the exchange orders it
  uint64_t head = __atomic_load_n(&lists[list].head, __ATOMIC_RELAXED);
  uint64_t after = 0;
  do {
    // relaxed: as above
    __atomic_store_n(&weft_hook_calls[number].next, (uint32_t)head, __ATOMIC_RELAXED);
    after = ((head >> 32) + 1) << 32 | number;
    // release: pairs with the acquire of take_from; relaxed: as above
  } while (!__atomic_compare_exchange_n(&lists[list].head, &head, after, false, __ATOMIC_RELEASE,
                                        __ATOMIC_RELAXED));
}

// Ends the turn of a call of another thread. False: a thread did. acq_rel: what was read of the
// call before belongs to this turn
static bool end_turn(uint32_t number, uint64_t turn) {
  return __atomic_compare_exchange_n(&weft_hook_calls[number].turn, &turn, turn + 1, false,
                                     __ATOMIC_ACQ_REL, __ATOMIC_RELAXED);
}

// Returns the number of the call to which the content of a slot belongs: the content is the return
// address of the call's stub, or, until its turn ends, its number, which the stub pushes. 0: none.
static uint32_t number_in(uint64_t content) {
  if (content < WEFT_HOOK_STUBS) return (uint32_t)content;
  const uint64_t distance = content - weft_stub_of(0);
  return distance < WEFT_HOOK_STUBS * WEFT_HOOK_STUB_BYTES
             ? (uint32_t)(distance / WEFT_HOOK_STUB_BYTES)
             : 0;
}

bool weft_call_is_left_by(uint64_t content, const uint64_t* slot, uint32_t number) {
  for (uint32_t i = 0; i < WEFT_LONGEST_JUMPS; ++i) {
    const uint32_t other = number_in(content);
    if (other == number) return false;
    if (other == 0) return true;
    // acquire: pairs with the release that published the call
    const uint64_t turn = __atomic_load_n(&weft_hook_calls[other].turn, __ATOMIC_ACQUIRE);
    const bool is_here = turn % 2 != 0 && weft_hook_calls[other].slot == slot;
    content = weft_call_returns_to(&weft_hook_calls[other].open, other);
    __atomic_thread_fence(__ATOMIC_ACQUIRE);  // what was read belongs to this turn, if it still is
    // relaxed: as above
    if (!is_here || __atomic_load_n(&weft_hook_calls[other].turn, __ATOMIC_RELAXED) != turn)
      return false;
  }
  return false;
}

bool weft_call_is_lost(uint32_t number) {
  const uint64_t from = (uint64_t)(uintptr_t)weft_hook_calls[number].slot;
  uint64_t content = 0;
  if (!weft_seccomp_may_peek()) return false;
  switch (weft_seccomp_peek(&content, from, sizeof(content))) {
    case WEFT_PEEK_COPIED:
      return weft_call_is_left(content, weft_hook_calls[number].slot, number);
    case WEFT_PEEK_FAULT:
      return true;
    case WEFT_PEEK_UNKNOWN:
      return false;
  }
  return false;
}

static void collect(void) {
  uint32_t freed = 0;
  // relaxed: there was no memory for calls, or there is
  const uint32_t count =
      __atomic_load_n(&weft_hook_calls, __ATOMIC_RELAXED) != NULL ? WEFT_HOOK_STUBS : 0;
  for (uint32_t i = 0; i < count; ++i) {
    // acquire: pairs with the release that published the call
    const uint64_t turn = __atomic_load_n(&weft_hook_calls[i].turn, __ATOMIC_ACQUIRE);
    if (turn % 2 == 0 || !weft_call_is_lost(i) || !end_turn(i, turn)) continue;
    weft_call_give_back(i);
    ++freed;
  }
  // relaxed: only a pause
  if (freed < WEFT_COLLECT_FEW) __atomic_store_n(&to_pass, WEFT_COLLECT_PAUSE, __ATOMIC_RELAXED);
}

bool weft_calls_make(void) {
  const size_t bytes = WEFT_HOOK_STUBS * sizeof(struct weft_hook_call);
  struct weft_hook_call* none = NULL;
  // acquire: the clock, which was learned before
  if (__atomic_load_n(&weft_hook_calls, __ATOMIC_ACQUIRE) != NULL) return true;
  weft_clock_start();
  const long map = weft_syscall(__NR_mmap, 0, bytes, 3 /* read, write */,
                                MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (weft_failed(map)) return false;
  // release: as above. Another thread may have been sooner
  if (!__atomic_compare_exchange_n(&weft_hook_calls, &none, (struct weft_hook_call*)map, false,
                                   __ATOMIC_RELEASE, __ATOMIC_RELAXED)) {
    weft_syscall(__NR_munmap, map, bytes);
  }
  return true;
}

static uint32_t take_new(void) {
  if (!weft_calls_make()) return 0;
  // relaxed: each thread gets another number
  while (__atomic_load_n(&used, __ATOMIC_RELAXED) < WEFT_HOOK_STUBS) {
    const uint32_t number = __atomic_fetch_add(&used, 1, __ATOMIC_RELAXED);
    if (number < WEFT_HOOK_STUBS && is_stub(number)) return number;
  }
  return 0;
}

static uint32_t take_any(void) {
  uint32_t number = take_new();
  for (uint32_t i = 0; i < WEFT_CALL_LISTS && number == 0; ++i) number = take_from(i);
  return number;
}

uint32_t weft_call_take(void) {
  uint32_t number = weft_call_take_listed();
  if (__builtin_expect(number == 0, 0)) number = take_any();
  if (__builtin_expect(number != 0, 1)) return number;
  // relaxed: a count that may be wrong by some
  const uint32_t pass = __atomic_load_n(&to_pass, __ATOMIC_RELAXED);
  if (pass != 0) {
    __atomic_store_n(&to_pass, pass - 1, __ATOMIC_RELAXED);  // relaxed: as above
    return 0;
  }
  collect();
  return take_any();
}

#endif
