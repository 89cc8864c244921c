// SPDX-License-Identifier: Apache-2.0
// See lock.h.
#include "ust-injector/preload/lock.h"

#include <errno.h>

#include "lib/ring/atomic_slot.h"
#include "ust-injector/preload/cycles.h"
#include "ust-injector/preload/process.h"

#define WEFT_LOCK_QUIET 0x80000000u /* in the lock: its owner made no system call to take it */
#define WEFT_LOCK_TRIES 2000        /* each may let other threads run for milliseconds */
#define WEFT_QUIET_SPINS 100000
#define WEFT_WAITED_DEAD 0x41000005L /* WEXITED | WNOHANG | WNOWAIT | __WALL */

// If nothing is traced, only the registry needs the lock, and no call may surprise a filter.
static bool must_be_quiet(void) {
  return weft_silent != 0 || weft_process.filter == WEFT_FILTER_UNTRIED ||
         weft_process.state == WEFT_PROCESS_OFF;
}

// How long to wait for the owner, which may have to wait for a CPU: at least `tries` tries, then
// until `cycles` are over if time can be read without a call.
struct patience {
  uint32_t tries;
  uint64_t cycles, begin;
};

static struct patience patience(uint32_t tries, uint64_t cycles) {
  return (struct patience){tries, cycles, weft_process.no_clock ? 0 : weft_cycles()};
}

static bool is_patient(struct patience* p) {
  if (p->tries != 0) return p->tries-- != 0;
  return !weft_process.no_clock && weft_cycles() - p->begin < p->cycles;
}

static bool lock_quietly(uint64_t* saved_mask) {
  const uint32_t self = (uint32_t)(weft_thread_pointer() >> 4) | WEFT_LOCK_QUIET;
  struct patience p = patience(WEFT_QUIET_SPINS, WEFT_ABOUT_A_TENTH);
  while (is_patient(&p)) {
    uint32_t owner = 0;
    // acquire: sees what the previous owner did
    if (__atomic_compare_exchange_n(&weft_anchor->lock, &owner, self, false, __ATOMIC_ACQUIRE,
                                    __ATOMIC_RELAXED)) {
      *saved_mask = 0;
      return true;
    }
    if (owner == self) return false;  // a handler that interrupted it
    weft_spin_pause();
  }
  return false;
}

bool weft_is_dead(uint32_t tid) {
  if ((tid & WEFT_LOCK_QUIET) != 0) return false;
  if (weft_syscall(__NR_tkill, tid, 0) == -ESRCH) return true;
  int32_t info[32] = {0};
  return weft_syscall(__NR_waitid, 1 /* P_PID */, tid, info, WEFT_WAITED_DEAD, 0) == 0 &&
         info[0] != 0;
}

bool weft_lock(uint64_t* saved_mask) {
  const uint64_t all = ~0ull;
  if (must_be_quiet()) return lock_quietly(saved_mask);
  weft_syscall(__NR_rt_sigprocmask, 2 /* SIG_SETMASK */, &all, saved_mask, sizeof(all));
  const uint32_t self = (uint32_t)weft_syscall(__NR_gettid, 0);
  struct patience p = patience(WEFT_LOCK_TRIES, WEFT_ABOUT_A_SECOND);
  for (uint32_t i = 0; is_patient(&p); ++i) {
    uint32_t owner = 0;
    // acquire: sees what the previous owner did
    if (__atomic_compare_exchange_n(&weft_anchor->lock, &owner, self, false, __ATOMIC_ACQUIRE,
                                    __ATOMIC_RELAXED)) {
      return true;
    }
    if (i % 256 == 255 && weft_is_dead(owner) &&
        // acquire: as above, from a dead owner
        __atomic_compare_exchange_n(&weft_anchor->lock, &owner, self, false, __ATOMIC_ACQUIRE,
                                    __ATOMIC_RELAXED)) {
      return true;
    }
    weft_syscall(__NR_sched_yield, 0);
  }
  weft_syscall(__NR_rt_sigprocmask, 2, saved_mask, 0, sizeof(all));
  return false;
}

void weft_unlock(uint64_t saved_mask) {
  // relaxed: our own word
  const bool quiet = (__atomic_load_n(&weft_anchor->lock, __ATOMIC_RELAXED) & WEFT_LOCK_QUIET) != 0;
  // release: pairs with the acquire of the next owner
  __atomic_store_n(&weft_anchor->lock, 0, __ATOMIC_RELEASE);
  if (quiet) return;
  weft_syscall(__NR_rt_sigprocmask, 2, &saved_mask, 0, sizeof(saved_mask));
}
