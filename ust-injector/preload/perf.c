// SPDX-License-Identifier: Apache-2.0
// See perf.h.
#include "ust-injector/preload/perf.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/mman.h>
#include <linux/perf_event.h>
#include <linux/resource.h>
#include <linux/time.h>

#include "ust-injector/preload/cycles.h"
#include "ust-injector/preload/helper_task.h"
#include "ust-injector/preload/lock.h"
#include "ust-injector/preload/perf_page.h"
#include "ust-injector/preload/process.h"
#include "ust-injector/preload/seccomp.h"
#include "ust-injector/preload/thread.h"

#define WEFT_PERF_COUNTERS 16u
#define WEFT_PERF_THREADS 1024u
#define WEFT_PERF_PROBES 8u /* places that a thread may have */
#define WEFT_PAGE 4096

static struct {
  uint32_t type;
  uint32_t refused;  // by the kernel, for every thread: 0 without asking again
  uint64_t config;
} counters[WEFT_PERF_COUNTERS];
static uint32_t counter_count;

uint32_t weft_perf_number(uint32_t type, uint64_t config) {
  for (uint32_t i = 0; i < counter_count; ++i) {
    if (counters[i].type == type && counters[i].config == config) return i;
  }
  if (counter_count == WEFT_PERF_COUNTERS) return WEFT_PERF_COUNTERS;
  counters[counter_count].type = type;
  counters[counter_count].config = config;
  return counter_count++;
}

// --- What the kernel counts anyway ---------------------------------------------------------------

static uint64_t read_thread_clock(void) {
  struct __kernel_timespec t = {0, 0};
  weft_optional(WEFT_CALL_CLOCK_GETTIME, __NR_clock_gettime, 3 /* CLOCK_THREAD_CPUTIME_ID */, &t);
  return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static uint64_t read_software(uint64_t config) {
  struct rusage usage;
  switch (config) {
    case PERF_COUNT_SW_CPU_CLOCK:
    case PERF_COUNT_SW_TASK_CLOCK:
      return read_thread_clock();
    case PERF_COUNT_SW_PAGE_FAULTS:
    case PERF_COUNT_SW_PAGE_FAULTS_MIN:
    case PERF_COUNT_SW_PAGE_FAULTS_MAJ:
    case PERF_COUNT_SW_CONTEXT_SWITCHES:
      break;
    default:
      return 0;
  }
  if (weft_optional(WEFT_CALL_GETRUSAGE, __NR_getrusage, 1 /* RUSAGE_THREAD */, &usage) != 0) {
    return 0;
  }
  if (config == PERF_COUNT_SW_CONTEXT_SWITCHES) return (uint64_t)(usage.ru_nvcsw + usage.ru_nivcsw);
  return (config == PERF_COUNT_SW_PAGE_FAULTS_MAJ ? 0 : (uint64_t)usage.ru_minflt) +
         (config == PERF_COUNT_SW_PAGE_FAULTS_MIN ? 0 : (uint64_t)usage.ru_majflt);
}

// --- The processor's counters --------------------------------------------------------------------

#if defined(__x86_64__)

// The counters of one thread. It is written under weft_lock, `tid` last. The memory is WIPEONFORK,
// as the mappings are.
struct perf_thread {
  uint32_t tid;      // 0: free
  uint32_t counted;  // counters[0 .. counted) were asked for
  uintptr_t thread_pointer;
  struct perf_event_mmap_page* pages[WEFT_PERF_COUNTERS];  // NULL: not available
};

static struct perf_thread* table;
static uint64_t full_until;  // no place was free: do not look again before this clock value

// Under weft_lock.
static struct perf_thread* thread_table(void) {
  const uint64_t size = WEFT_PERF_THREADS * sizeof(struct perf_thread);
  if (table != NULL) return table;
  const long map =
      weft_syscall(__NR_mmap, 0, size, 3, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (weft_failed(map)) return NULL;
  if (weft_syscall(__NR_madvise, map, size, MADV_WIPEONFORK) != 0) {
    weft_syscall(__NR_munmap, map, size);
    return NULL;
  }
  // release: lookups without the lock find it whole
  __atomic_store_n(&table, (struct perf_thread*)map, __ATOMIC_RELEASE);
  return table;
}

struct opening {
  struct perf_thread* thread;
  uint32_t tid;
};

static struct perf_event_mmap_page* open_counter(uint32_t number, uint32_t tid) {
  struct perf_event_attr attr;
  memset(&attr, 0, sizeof(attr));
  attr.type = counters[number].type;
  attr.size = PERF_ATTR_SIZE_VER0;
  attr.config = counters[number].config;
  attr.exclude_kernel = 1;
  attr.exclude_hv = 1;
  const long fd = weft_optional(WEFT_CALL_PERF_EVENT_OPEN, __NR_perf_event_open, &attr, tid, -1, -1,
                                8 /* PERF_FLAG_FD_CLOEXEC */);
  if (fd < 0) {
    counters[number].refused = fd != -EMFILE && fd != -ENFILE && fd != -ENOMEM && fd != -ESRCH;
    return NULL;
  }
  const long map = weft_syscall(__NR_mmap, 0, WEFT_PAGE, 1 /* PROT_READ */, MAP_SHARED, fd, 0);
  weft_syscall(__NR_close, fd);
  if (weft_failed(map)) return NULL;
  struct perf_event_mmap_page* page = (struct perf_event_mmap_page*)map;
  if (page->cap_user_rdpmc) return page;
  weft_syscall(__NR_munmap, map, WEFT_PAGE);
  counters[number].refused = 1;
  return NULL;
}

// Opens the counters of the thread o->tid. It runs in a helper thread (helper_task.h).
static void open_apart(void* arg) {
  const struct opening* o = arg;
  struct perf_thread* t = o->thread;
  for (; t->counted < counter_count; ++t->counted) {
    if (counters[t->counted].type == PERF_TYPE_SOFTWARE || counters[t->counted].refused) continue;
    t->pages[t->counted] = open_counter(t->counted, o->tid);
  }
}

static void take_place(struct perf_thread* t) {
  // relaxed: only its owner, which is dead, reads it
  __atomic_store_n(&t->tid, 0, __ATOMIC_RELAXED);
  for (uint32_t i = 0; i < WEFT_PERF_COUNTERS; ++i) {
    if (t->pages[i] != NULL) weft_syscall(__NR_munmap, t->pages[i], WEFT_PAGE);
    t->pages[i] = NULL;
  }
  t->counted = 0;
}

static struct perf_thread* find(struct perf_thread* all, uint32_t tid, uintptr_t tp) {
  for (uint32_t i = 0; all != NULL && i < WEFT_PERF_PROBES; ++i) {
    struct perf_thread* t = &all[(tid + i) % WEFT_PERF_THREADS];
    // acquire: pairs with the release of the thread's own first event
    if (__atomic_load_n(&t->tid, __ATOMIC_ACQUIRE) == tid && t->thread_pointer == tp) return t;
  }
  return NULL;
}

// Returns a place for the calling thread; one of a dead thread is emptied. The caller holds
// weft_lock. NULL: all are taken.
static struct perf_thread* make_place(struct perf_thread* all, uint32_t tid) {
  for (uint32_t i = 0; all != NULL && i < WEFT_PERF_PROBES; ++i) {
    struct perf_thread* t = &all[(tid + i) % WEFT_PERF_THREADS];
    if (t->tid != 0 && t->tid != tid &&
        weft_syscall(__NR_tgkill, weft_vpid(), t->tid, 0) != -ESRCH) {
      continue;
    }
    take_place(t);
    return t;
  }
  return NULL;
}

static __attribute__((noinline)) void open_counters(uint32_t tid, uintptr_t tp) {
  uint64_t mask;
  if (!weft_seccomp_may_call() || !weft_lock(&mask)) return;
  struct perf_thread* all = thread_table();
  struct perf_thread* t = find(all, tid, tp);
  if (t == NULL) t = make_place(all, tid);
  if (t != NULL) {
    struct opening o = {.thread = t, .tid = tid};
    t->thread_pointer = tp;
    if (!weft_is_threaded() || !weft_helper_thread_run(open_apart, &o)) open_apart(&o);
    // release: everything above
    __atomic_store_n(&t->tid, tid, __ATOMIC_RELEASE);
  } else {
    full_until = weft_cycles() + WEFT_ABOUT_A_TENTH;
  }
  weft_unlock(mask);
}

static uint64_t read_processor(uint32_t number) {
  if (counters[number].refused || weft_process.on_valgrind) return 0;
  const uint32_t tid = weft_thread_id();
  const uintptr_t tp = weft_thread_pointer();
  // acquire: pairs with the release of thread_table
  struct perf_thread* t = find(__atomic_load_n(&table, __ATOMIC_ACQUIRE), tid, tp);
  if ((t == NULL && weft_cycles() >= full_until) || (t != NULL && t->counted <= number)) {
    open_counters(tid, tp);
    t = find(__atomic_load_n(&table, __ATOMIC_ACQUIRE), tid, tp);  // acquire: as above
  }
  return t != NULL && t->pages[number] != NULL ? weft_perf_read_page(t->pages[number]) : 0;
}

#else

static uint64_t read_processor(uint32_t number) {
  (void)number;
  return 0;
}

#endif

uint64_t weft_perf_read(uint32_t number) {
  if (number >= WEFT_PERF_COUNTERS) return 0;
  return counters[number].type == PERF_TYPE_SOFTWARE ? read_software(counters[number].config)
                                                     : read_processor(number);
}
