// SPDX-License-Identifier: Apache-2.0
// See own_rseq.h.
#include "ust-injector/preload/own_rseq.h"

#include <errno.h>
#include <linux/mman.h>

#include "ust-injector/preload/process.h"
#include "ust-injector/preload/seccomp.h"
#include "ust-injector/preload/thread.h"

#define WEFT_AREAS 4096u
#define WEFT_RSEQ_BYTES 32u
#define WEFT_RSEQ_UNREGISTER 1

enum area_state {
  AREA_FREE = 0,
  AREA_CLAIMED = 1,  // its owner is talking to the kernel
  AREA_USABLE = 2,
  AREA_REFUSED = 3,  // the kernel refused it: other code registered the thread
};

struct entry {
  uint8_t rseq[WEFT_RSEQ_BYTES];  // the kernel's
  uintptr_t thread_pointer;
  uint32_t tid;
  uint32_t state;  // enum area_state
  uint64_t reserved[2];
};

static struct entry* pool;

static struct entry* areas(void) {
  // acquire: pairs with the release below
  struct entry* p = __atomic_load_n(&pool, __ATOMIC_ACQUIRE);
  if (p != NULL) return p;
  const uint64_t size = WEFT_AREAS * sizeof(struct entry);
  const long map =
      weft_syscall(__NR_mmap, 0, size, 3, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (weft_failed(map)) return NULL;
  struct entry* mine = (struct entry*)map;
  if (weft_syscall(__NR_madvise, map, size, MADV_WIPEONFORK) != 0 ||
      // release: for symmetry; the pool is all zero
      !__atomic_compare_exchange_n(&pool, &p, mine, false, __ATOMIC_RELEASE, __ATOMIC_ACQUIRE)) {
    weft_syscall(__NR_munmap, map, size);
    return p;
  }
  return mine;
}

static bool register_area(struct entry* e) {
  long r = weft_syscall(__NR_rseq, e->rseq, WEFT_RSEQ_BYTES, 0, WEFT_RSEQ_SIGNATURE);
  if (r == -EBUSY) {
    // In a fork child the kernel knows the area, but the bytes that it wrote there were wiped. The
    // area is registered again, so that the kernel writes them anew.
    weft_syscall(__NR_rseq, e->rseq, WEFT_RSEQ_BYTES, WEFT_RSEQ_UNREGISTER, WEFT_RSEQ_SIGNATURE);
    r = weft_syscall(__NR_rseq, e->rseq, WEFT_RSEQ_BYTES, 0, WEFT_RSEQ_SIGNATURE);
  }
  return r == 0;
}

// Returns true if the entry is the caller's now, in AREA_CLAIMED.
static bool claim(struct entry* e, uintptr_t tp) {
  // acquire: pairs with the release of the former owner's last store of it
  uint32_t state = __atomic_load_n(&e->state, __ATOMIC_ACQUIRE);
  if (state == AREA_CLAIMED) return false;
  // Another thread that lives has it, or may live. Two threads never share a thread pointer here
  // (weft_ids_are_shared): the thread that had this one is dead.
  if (state != AREA_FREE && e->thread_pointer != tp &&
      weft_syscall(__NR_tgkill, weft_vpid(), e->tid, 0) != -ESRCH) {
    return false;
  }
  // acquire: as above
  return __atomic_compare_exchange_n(&e->state, &state, AREA_CLAIMED, false, __ATOMIC_ACQUIRE,
                                     __ATOMIC_RELAXED);
}

static __attribute__((noinline)) void* register_thread(uintptr_t tp, uint32_t tid, uint32_t index) {
  if (!weft_process.own_rseq || weft_process.rseq_kills || !weft_seccomp_may_call()) return NULL;
  struct entry* all = areas();
  if (all == NULL || !claim(&all[index], tp)) return NULL;
  struct entry* e = &all[index];
  e->thread_pointer = tp;
  e->tid = tid;
  const bool good = register_area(e);
  // release: pointer and id before the state that makes them valid
  __atomic_store_n(&e->state, good ? AREA_USABLE : AREA_REFUSED, __ATOMIC_RELEASE);
  return good ? e->rseq : NULL;
}

static uint32_t index_of(uintptr_t tp) {
  return (uint32_t)((tp >> 6) * 0x9e3779b97f4a7c15ull >> 52) % WEFT_AREAS;
}

// Returns the calling thread's entry, whatever its state; NULL: it has none.
static struct entry* known_entry(void) {
  // acquire: pairs with the release in areas()
  struct entry* all = __atomic_load_n(&pool, __ATOMIC_ACQUIRE);
  if (all == NULL) return NULL;
  const uintptr_t tp = weft_thread_pointer();
  struct entry* e = &all[index_of(tp)];
  // acquire: pointer and id are those of the state
  const uint32_t state = __atomic_load_n(&e->state, __ATOMIC_ACQUIRE);
  if ((state != AREA_USABLE && state != AREA_REFUSED) || e->thread_pointer != tp) return NULL;
  // The kernel is asked: a child in shared memory has its parent's thread pointer.
  return e->tid == (uint32_t)weft_syscall(__NR_gettid, 0) ? e : NULL;
}

long weft_own_rseq_call(long area, long size, long flags, long signature) {
  struct entry* e = weft_process.own_rseq ? known_entry() : NULL;
  const uint32_t state = e != NULL ? e->state : AREA_FREE;
  const bool gives_way = flags == 0 && state == AREA_USABLE;
  if (gives_way) {
    // relaxed: only this thread and its handlers read it, and they must find the area refused
    // before it is unregistered
    __atomic_store_n(&e->state, AREA_REFUSED, __ATOMIC_RELAXED);
    weft_syscall(__NR_rseq, e->rseq, WEFT_RSEQ_BYTES, WEFT_RSEQ_UNREGISTER, WEFT_RSEQ_SIGNATURE);
  }
  const long result = weft_syscall6(__NR_rseq, area, size, flags, signature, 0, 0);
  const bool returns = state == AREA_REFUSED && flags == WEFT_RSEQ_UNREGISTER && result == 0;
  // release: as in register_thread. The thread's next event registers it again
  if (returns || (gives_way && result != 0))
    __atomic_store_n(&e->state, AREA_FREE, __ATOMIC_RELEASE);
  return result;
}

void* weft_own_rseq(void) {
  if (!weft_process.own_rseq || weft_ids_are_shared()) return NULL;
  const uintptr_t tp = weft_thread_pointer();
  const uint32_t tid = weft_thread_id();
  const uint32_t index = index_of(tp);
  // acquire: pairs with the release in areas()
  struct entry* all = __atomic_load_n(&pool, __ATOMIC_ACQUIRE);
  if (all != NULL) {
    struct entry* e = &all[index];
    // acquire: pointer and id are those of the state
    const uint32_t state = __atomic_load_n(&e->state, __ATOMIC_ACQUIRE);
    if (e->thread_pointer == tp && e->tid == tid) {
      if (state == AREA_USABLE) return e->rseq;
      if (state != AREA_FREE) return NULL;
    }
  }
  return register_thread(tp, tid, index);
}
