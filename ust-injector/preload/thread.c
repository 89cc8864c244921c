// SPDX-License-Identifier: Apache-2.0
// See thread.h.
#include "ust-injector/preload/thread.h"

#include <linux/mman.h>

#include "ust-injector/preload/clock.h"
#include "ust-injector/preload/process.h"

#define WEFT_THREADS 4096u      /* entries of the table; colliding threads share one in turns */
#define WEFT_NAME_AGE 10000000u /* of weft_clock_coarse: 10 ms */
#define WEFT_TCB_BYTES 0x300    /* bytes of a control block that are searched */
#define WEFT_GO_TCB_BYTES 0x78  /* of runtime.m of Go, which has more before the thread pointer */

static struct weft_thread* table;

static struct weft_thread* thread_table(void) {
  // acquire: pairs with the release below
  struct weft_thread* t = __atomic_load_n(&table, __ATOMIC_ACQUIRE);
  if (t != NULL) return t;
  const uint64_t size = WEFT_THREADS * sizeof(struct weft_thread);
  const long map =
      weft_syscall(__NR_mmap, 0, size, 3, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (weft_failed(map)) return NULL;
  weft_syscall(__NR_madvise, map, size, MADV_WIPEONFORK);
  struct weft_thread* mine = (struct weft_thread*)map;
  weft_clock_start();
  // release: nothing to order yet, but the table's users read zeroes only from a mapped table
  if (!__atomic_compare_exchange_n(&table, &t, mine, false, __ATOMIC_RELEASE, __ATOMIC_ACQUIRE)) {
    weft_syscall(__NR_munmap, map, size);
    mine = t;
  }
  return mine;
}

const struct weft_thread* weft_thread_self(void) {
  struct weft_thread* all = thread_table();
  if (all == NULL) return NULL;
  const uint32_t tid = weft_thread_id();
  struct weft_thread* t = &all[tid % WEFT_THREADS];
  const uint64_t now = weft_clock_coarse();
  // acquire: the name was stored before the id
  if (__atomic_load_n(&t->tid, __ATOMIC_ACQUIRE) == tid &&
      (now - t->since < WEFT_NAME_AGE || weft_silent)) {
    return t;
  }
  char name[WEFT_CONTEXT_PROCNAME_SIZE] = {0};
  weft_syscall(__NR_prctl, 16 /* PR_GET_NAME */, name);
  // relaxed: another thread that shares the entry asks for its own name again
  __atomic_store_n(&t->tid, 0, __ATOMIC_RELAXED);
  memcpy(t->procname, name, sizeof(name));
  t->since = now;
  // release: name and time before the id that makes them valid
  __atomic_store_n(&t->tid, tid, __ATOMIC_RELEASE);
  return t;
}

#if defined(__x86_64__)
// Offset of the thread id in the control block, as this thread's says; 0: not found.
static int32_t find_tid_offset(uint32_t tid) {
  const uintptr_t tp = weft_thread_pointer();
  const uintptr_t page_end = (tp | 4095) + 1;
  // runtime.m of Go, in which the thread pointer is.
  for (uint32_t at = 8; weft_process.is_go && at <= WEFT_GO_TCB_BYTES; at += 8) {
    if (tp % 4096 < at) break;
    if (*(const volatile uint64_t*)(tp - at) == tid) return -(int32_t)at;
  }
  for (uint32_t at = 8; at + 4 <= WEFT_TCB_BYTES; at += 4) {
    // A control block may end with its page only where it is short (musl).
    if (tp + at + 4 > page_end && at < 0x200) return 0;
    if (*(const volatile uint32_t*)(tp + at) == tid) return (int32_t)at;
  }
  return 0;
}

uint32_t weft_thread_id(void) {
  const uint32_t known = weft_thread_id_known();
  if (__builtin_expect(known != 0, 1)) return known;
  const uintptr_t tp = weft_thread_pointer();
  const uint32_t tid = (uint32_t)weft_syscall(__NR_gettid, 0);
  if (weft_ids_are_shared() || tp == 0) return tid;
  const int32_t offset = weft_anchor->tid_offset;
  if (offset == 0) {
    if (weft_silent) return tid;
    weft_anchor->tid_found_at = tp;
    weft_anchor->tid_offset = find_tid_offset(tid);
  } else if (*(const volatile uint32_t*)(tp + (uintptr_t)(intptr_t)offset) == tid) {
    weft_anchor->tid_confirmed = 1;
  } else {
    weft_anchor->tid_offset = 0;
  }
  return tid;
}
#else
uint32_t weft_thread_id(void) { return (uint32_t)weft_syscall(__NR_gettid, 0); }
#endif
