// SPDX-License-Identifier: Apache-2.0
// See atomic_write.h.
#include "ust-injector/preload/atomic_write.h"

#include <errno.h>
#include <linux/time_types.h>

#include "lib/ring/atomic_slot.h"
#include "ust-injector/preload/clock.h"
#include "ust-injector/preload/cycles.h"
#include "ust-injector/preload/lock.h"
#include "ust-injector/preload/process.h"
#include "ust-injector/preload/seccomp.h"
#include "ust-injector/preload/thread.h"

// A wait is this many calls of sched_yield, which suffice if threads have one priority, and then
// sleeps, which also let an owner of a lower priority run. A whole wait takes about a second.
#define WEFT_WAIT_YIELDS 64u
#define WEFT_WAIT_SHORT_SLEEPS 32u
#define WEFT_WAIT_SLEEPS 1000u
#define WEFT_SHORT_SLEEP_NS 20000
#define WEFT_SLEEP_NS 1000000
// Loops that replace a sleep if the kernel may not be called: about half a millisecond.
#define WEFT_WAIT_SPINS 10000u
// Looks at an owner that is named by its thread id: is it dead?
#define WEFT_WAIT_DEATH 16u

static uint64_t now_cycles(void) { return weft_cycles(); }

static void sleep_for(uint32_t ns) {
  const struct __kernel_timespec time = {.tv_nsec = ns};
  const long slept = weft_optional(WEFT_CALL_NANOSLEEP, __NR_nanosleep, &time, 0);
  if (slept == 0 || slept == -EINTR) return;
  for (uint32_t i = 0; i < WEFT_WAIT_SPINS; ++i) weft_spin_pause();
}

// Threads that share a thread pointer are told apart by their ids.
static uint64_t shared_owner(void) {
  // A silent process cannot ask the kernel. Threads that share a pointer then count as one owner,
  // and an event that interrupts another one of such a thread counts as nested.
  const long tid = weft_syscall(__NR_gettid, 0);
  return tid > 0 ? (uint64_t)tid : weft_thread_pointer();
}

// An owner that is named by its id may have been killed while it owned the lock: nothing that it
// did not commit is visible, so the lock is taken from it.
static void free_from_the_dead(struct weft_slot* slot, uint64_t owner) {
  if (owner > 0x7fffffff || !weft_is_dead((uint32_t)owner)) return;
  // release: as the owner's own unlock
  __atomic_compare_exchange_n(&slot->lock, &owner, 0, false, __ATOMIC_RELEASE, __ATOMIC_RELAXED);
}

// noinline: tests/kill goes through the instructions of what calls it.
static __attribute__((noinline)) int wait_for_owner(struct weft_slot* slot, uint64_t owner,
                                                    uint32_t step) {
  if (weft_process.shares_tls && step % WEFT_WAIT_DEATH == 0) free_from_the_dead(slot, owner);
  if (step < WEFT_WAIT_YIELDS && !weft_silent) {
    weft_syscall(__NR_sched_yield, 0);
    return 1;
  }
  if (step >= WEFT_WAIT_YIELDS + WEFT_WAIT_SLEEPS) return 0;
  sleep_for(step < WEFT_WAIT_YIELDS + WEFT_WAIT_SHORT_SLEEPS ? WEFT_SHORT_SLEEP_NS : WEFT_SLEEP_NS);
  return 1;
}

// noinline: tests/kill finds its instructions by its name.
__attribute__((noinline)) void weft_write_atomically(struct weft_writer_ring* ring,
                                                     const struct weft_record_parts* parts) {
  const uint64_t self = weft_process.shares_tls ? shared_owner() : weft_thread_pointer();
  weft_atomic_write(ring, self, parts, weft_cpu(),
                    ring->clock == WEFT_CLOCK_TSC ? now_cycles : weft_clock_monotonic,
                    wait_for_owner);
}
