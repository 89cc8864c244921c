// SPDX-License-Identifier: Apache-2.0
// The library's record of its process: state without behaviour, which all floors above read.
// lifecycle.h fills it in. There is one per process, in two parts:
//
//   weft_process ordinary private memory: inherited by fork as it is, shared by vfork and CLONE_VM
//                 children. It is filled once, at start-up.
//   weft_anchor one MADV_WIPEONFORK page: a fork child, also of a raw clone, finds zero. It holds
//                 only values of this very process: its ring sets, lock and pid.
//
// The layout of both is a part of the fast path, which finds its words at constant offsets.
#ifndef WEFT_UST_INJECTOR_PRELOAD_PROCESS_H_
#define WEFT_UST_INJECTOR_PRELOAD_PROCESS_H_

#include <stdbool.h>
#include <stdint.h>

#include "lib/abi/control.h"
#include "lib/abi/hooks.h"
#include "lib/ring/writer.h"
#include "ust-injector/preload/sys.h"
#include "ust-injector/preload/text.h"

#define WEFT_PATH_MAX 1024
#define WEFT_RING_SLOTS_OFFSET 256u /* in every ring set that this library makes */

struct weft_missing;  // doorbell.c

enum weft_process_state {
  WEFT_PROCESS_NEW = 0,
  WEFT_PROCESS_READY = 1,
  WEFT_PROCESS_OFF = 2,  // neither WEFT_DIR nor WEFT_CONTAINER is set, or setuid: silent for good
};

// WEFT_FILTER_UNTRIED: there was one at exec, or when an agent woke the library: nothing but what
// ld.so itself calls before a trial.
enum weft_process_filter {
  WEFT_FILTER_NONE = 0,  // or it was checked when it was installed
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
  uint32_t filter;       // WEFT_FILTER_NONE or WEFT_FILTER_UNTRIED
  uint32_t no_clock;  // reading the time stamp counter would raise SIGSEGV (lifecycle.h): all off
  uint32_t own_rseq;  // libc registers none: own_rseq.h
  uint32_t own_id_offset;  // in its areas, as slot_id_offset
  uint32_t is_go;          // its functions are hooked as Go's (hooks_go.h)
  uint32_t on_valgrind;    // it knows few kinds of clone, and not every instruction
  uint32_t rseq_kills;     // a filter would kill for rseq
  uint32_t clone_kills;    // a filter would kill for the helper thread of helper_task.h
  uint32_t call_kills;     // bits of enum weft_call (seccomp.h) for which a filter would kill
  // The next two belong to children.h. They are not in the anchor, because a child of such a child
  // has no rseq either.
  uint32_t shares_tls;  // a CLONE_VM child may share a thread pointer: atomic slots only
  uint32_t vforked;     // vfork children that run now: likewise, and ids are not to be cached
  // Shared with all forks and their forks; NULL: none.
  struct weft_missing* missing;
  char folder[WEFT_PATH_MAX];
  char memory_pool[WEFT_PATH_MAX];  // the container's (ring_memory.h)
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
  uint64_t instance;       // kept name of the ring set that could not be made; 0: none
};

struct weft_anchor {
  struct weft_anchor_channel channels[WEFT_MAX_CHANNELS];
  uint32_t lock;       // lock.h: 0 free, else the owner's tid, or a mark and a part of its address
  uint32_t gate;       // children.c
  uint32_t vpid;       // 0: not asked for yet
  int32_t tid_offset;  // thread.c
  uint32_t tid_confirmed;
  uint32_t generation;          // weft_generation(); 0: not asked for yet
  uint32_t knows_clock_offset;  // weft_process.clock_offset is this process's own
  uintptr_t tid_found_at;
};

extern struct weft_process weft_process __attribute__((visibility("hidden")));
extern struct weft_anchor* weft_anchor __attribute__((visibility("hidden")));

// Returns true if start-up is over and events can be recorded in this process. May run in any
// thread and in signal handlers.
static inline bool weft_process_is_ready(void) {
  // acquire: pairs with the release of start-up; the reader sees all that the state stands for
  return __atomic_load_n(&weft_process.state, __ATOMIC_ACQUIRE) == WEFT_PROCESS_READY;
}

// Returns a number that differs from 0 and from those of all processes whose memory this one was
// forked from: it distinguishes the process's own words in memory from inherited ones. A vfork
// child has its parent's number, as it has its parent's memory.
uint32_t weft_generation(void);

// Ids are not what this process's memory says: ask the kernel.
static inline bool weft_ids_are_shared(void) {
  return weft_process.vforked != 0 || weft_process.shares_tls != 0;
}

// Returns the process id in this process's own pid namespace.
static inline uint32_t weft_vpid(void) {
  uint32_t pid = weft_ids_are_shared() ? 0 : weft_anchor->vpid;
  if (pid == 0) {
    pid = (uint32_t)weft_syscall(__NR_getpid, 0);
    if (!weft_ids_are_shared() && !weft_silent) weft_anchor->vpid = pid;
  }
  return pid;
}

#endif  // WEFT_UST_INJECTOR_PRELOAD_PROCESS_H_
