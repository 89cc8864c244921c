// SPDX-License-Identifier: Apache-2.0
// What libweft.so knows about the process it is in. One per process, in two parts:
//
//   weft_process  ordinary private memory: inherited by fork as it is, shared by vfork and CLONE_VM
//                 children. Filled once, by the first entry point that is called (a provider's
//                 constructor may come before ours, musl gives constructors garbage arguments).
//   weft_anchor   one MADV_WIPEONFORK page: a fork child, also of a raw clone, finds zero. All that
//                 is true only for this very process hangs on it: its ring sets, its lock, its pid.
//
// No thread, no signal, no timer, no descriptor is kept; no system call after start-up until the
// first event that is enabled.
#ifndef WEFT_UST_INJECTOR_PRELOAD_PROCESS_H_
#define WEFT_UST_INJECTOR_PRELOAD_PROCESS_H_

#include <stdbool.h>
#include <stdint.h>

#include "lib/abi/control.h"
#include "lib/ring/writer.h"
#include "ust-injector/preload/sys.h"
#include "ust-injector/preload/text.h"

#define WEFT_PATH_MAX 1024

enum weft_process_state {
  WEFT_PROCESS_NEW = 0,
  WEFT_PROCESS_READY = 1,
  WEFT_PROCESS_OFF = 2,  // neither WEFT_DIR nor WEFT_CONTAINER is set, or setuid: silent for good
};

enum weft_process_filter {
  WEFT_FILTER_NONE = 0,     // or one that was looked at when it was installed
  WEFT_FILTER_UNTRIED = 1,  // was there at exec: nothing but what ld.so itself calls before a trial
};

struct weft_process {
  uint32_t state;           // enum weft_process_state
  uint32_t slot_id_offset;  // WEFT_RSEQ_..._OFFSET of writer.h; 0: no rseq in this process
  intptr_t rseq_offset;     // of struct rseq from the thread pointer
  const uint8_t* control;   // mapped read-only
  const uint32_t* words;
  uint64_t control_size;
  uint64_t arena_offset;
  uint32_t own_control;  // made by the process, since there was no file (own_control.h)
  uint32_t slot_count;   // with own_control these two are 0 until an agent came
  uint32_t clock;
  int64_t clock_offset;  // of CLOCK_MONOTONIC here, ns (clock.h)
  uint32_t filter;       // enum weft_process_filter
  uint32_t no_clock;  // reading the time stamp counter would raise SIGSEGV (interpose.c): all off
  uint32_t own_rseq;  // libc registers none: own_rseq.h
  uint32_t own_id_offset;  // in its areas, as slot_id_offset
  uint32_t on_valgrind;    // which knows few kinds of clone, and not every instruction
  uint32_t rseq_kills;     // a filter would kill for rseq
  uint32_t clone_kills;    // a filter would kill for the helper thread of apart.h
  uint32_t call_kills;     // bits of enum weft_call (seccomp.h) for which a filter would kill
  // Of children.h. Here and not in the anchor: a child of such a child has no rseq either.
  uint32_t shares_tls;  // a CLONE_VM child may run on a thread pointer of ours: atomic slots only
  uint32_t vforked;     // vfork children that run now: likewise, and ids are not to be cached
  // Shared with all forks, also of forks; NULL: none. See ring_set.c.
  struct weft_unannounced* unannounced;
  char folder[WEFT_PATH_MAX];
};

// Ring sets that could not be announced and are not said yet, by channel. Written with atomic
// operations: any process of the forks may write, and may die between two.
struct weft_unannounced {
  struct {
    uint64_t channel_id;  // 0: free
    uint64_t count;
  } of[WEFT_MAX_CHANNELS];
};

// An entry per channel of the process's own numbering (channel.h); `ring` is 0 in a fork child.
struct weft_anchor_channel {
  struct weft_writer_ring ring;
  struct weft_ring_header* header;
  uint32_t refused;        // a tracker leaves this process out, or there is no memory for it: off
  uint32_t rseq_slots;     // ring.slots->count where sections are safe (children.h); 0: no ring set
  uint64_t pending;        // events discarded before there was a ring set; moved into it. Atomic
  uint64_t pending_since;  // clock of the rings: none of these is older; 0: none yet. Atomic
  uint64_t retry_after;    // do not try to make the ring set before this clock value
};

struct weft_anchor {
  struct weft_anchor_channel channels[WEFT_MAX_CHANNELS];
  uint32_t lock;  // 0 free, else the owner's tid, or WEFT_LOCK_QUIET and a part of its address
  uint32_t gate;  // children.c
  uint32_t vpid;  // 0: not asked for yet
  uint32_t tid_offset;  // thread.c
  uint32_t tid_confirmed;
  uint32_t generation;          // weft_generation(); 0: not asked for yet
  uint32_t knows_clock_offset;  // weft_process.clock_offset is this process's own
  uintptr_t tid_found_at;
};

extern struct weft_process weft_process __attribute__((visibility("hidden")));
extern struct weft_anchor* weft_anchor __attribute__((visibility("hidden")));

// True if events can be recorded in this process. Cheap after the first call. If false, weft_anchor
// may be there all the same: then the registry and application probes work.
bool weft_process_ready(void);

// Under the lock, before the rules are used: slots and clock, where an agent that came later
// decides them. False: none came yet.
bool weft_process_learn(void);

// The slow path's lock, with all signals blocked while it is held, so that a handler never waits
// for the thread it interrupted. Free in a fork child. A dead owner's (a killed CLONE_VM child's)
// is taken over: whatever it guards is complete at every store. False: not had in bounded time.
// Where no system call may be made (seccomp.h) signals are not blocked: a handler gets false at
// once.
#define WEFT_LOCK_QUIET 0x80000000u
bool weft_lock(uint64_t* saved_mask);
void weft_unlock(uint64_t saved_mask);

// The thread of this id was killed: it is gone, or a child of ours that nobody has waited for yet.
bool weft_is_dead(uint32_t tid);

// Memory that is never given back (small, under the lock). Zeroed, aligned to 16; NULL: none.
void* weft_allocate(uint64_t size);

// The same in pages of its own that a fork child finds zeroed again.
void* weft_allocate_wiped_on_fork(uint64_t size);

// Under the lock: room for what weft_allocate may be asked for when no more can be had.
void weft_reserve_memory(void);

// Before anything that calls the kernel for more than a lock: under a filter that was there at
// exec, the trial. False: nothing may be called; the process is silent for good. Without weft_lock.
bool weft_process_may_call(void);

// An entry of the auxiliary vector, or 0.
unsigned long weft_auxiliary(unsigned long type);

// Tells this process's own words from those that came with its memory when it was forked: not 0,
// and none that a process before it had. The same in vfork children, whose memory is their
// parent's.
uint32_t weft_generation(void);

// Ids are not what this process's memory says: ask the kernel.
static inline bool weft_ids_are_shared(void) {
  return weft_process.vforked != 0 || weft_process.shares_tls != 0;
}

// One value of the environment that the process was started with, or NULL.
const char* weft_environment(const char* name);

static inline uint32_t weft_vpid(void) {
  uint32_t pid = weft_ids_are_shared() ? 0 : weft_anchor->vpid;
  if (pid == 0) {
    pid = (uint32_t)weft_syscall(__NR_getpid, 0);
    if (!weft_ids_are_shared() && !weft_silent) weft_anchor->vpid = pid;
  }
  return pid;
}

/* In weft_cycles. */
#define WEFT_ABOUT_A_SECOND (1ull << 31)
#define WEFT_ABOUT_A_TENTH (1ull << 28)

static inline uint64_t weft_cycles(void) {
#if defined(__x86_64__)
  uint32_t low, high;
  __asm__ volatile("rdtsc" : "=a"(low), "=d"(high));
  return (uint64_t)high << 32 | low;
#else
  uint64_t t;
  __asm__ volatile("isb; mrs %0, cntvct_el0" : "=r"(t));
  return t;
#endif
}

#endif  // WEFT_UST_INJECTOR_PRELOAD_PROCESS_H_
