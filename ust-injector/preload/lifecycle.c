// SPDX-License-Identifier: Apache-2.0
// See lifecycle.h.
#include "ust-injector/preload/lifecycle.h"

#include <elf.h>
#include <errno.h>
#include <linux/mman.h>

#include "ust-injector/preload/channel_table.h"
#include "ust-injector/preload/clock.h"
#include "ust-injector/preload/control_area.h"
#include "ust-injector/preload/decide.h"
#include "ust-injector/preload/doorbell.h"
#include "ust-injector/preload/emit.h"
#include "ust-injector/preload/environment.h"
#include "ust-injector/preload/helper_task.h"
#include "ust-injector/preload/hooks.h"
#include "ust-injector/preload/keep.h"
#include "ust-injector/preload/lock.h"
#include "ust-injector/preload/memory.h"
#include "ust-injector/preload/own_rseq.h"
#include "ust-injector/preload/registry.h"
#include "ust-injector/preload/ring_set.h"
#include "ust-injector/preload/rules.h"
#include "ust-injector/preload/seccomp.h"
#include "ust-injector/preload/statedump.h"
#include "ust-injector/preload/thread.h"

#ifndef AT_RSEQ_FEATURE_SIZE
#define AT_RSEQ_FEATURE_SIZE 27
#endif
#define WEFT_RSEQ_FEATURE_MM_CID 28

// The webhook mounts the library's volume here. It sets WEFT_CONTAINER and no WEFT_DIR.
#define WEFT_POD_FOLDER "/weft"

// From a libc. It is weak, and so NULL if there is no libc.
extern const ptrdiff_t __rseq_offset __attribute__((weak));
extern const unsigned int __rseq_size __attribute__((weak));

// --- start ---------------------------------------------------------------------------------------

static void find_rseq(void) {
  // __rseq_size says 20 on Debian 12 although 32 bytes are registered and mm_cid works.
  const uint32_t id_offset = weft_auxiliary(AT_RSEQ_FEATURE_SIZE) >= WEFT_RSEQ_FEATURE_MM_CID
                                 ? WEFT_RSEQ_MM_CID_OFFSET
                                 : WEFT_RSEQ_CPU_ID_OFFSET;
  if (&__rseq_size == NULL || __rseq_size == 0) {
    weft_process.own_id_offset = id_offset;
    weft_process.own_rseq = 1;
    return;
  }
  weft_process.rseq_offset = __rseq_offset;
  weft_process.slot_id_offset = id_offset;
}

// Asks the question of valgrind.h (RUNNING_ON_VALGRIND), by instructions that have no effect
// elsewhere.
static bool is_on_valgrind(void) {
  const uint64_t question[6] = {0x1001};
  uint64_t answer = 0;
#if defined(__x86_64__)
  __asm__ volatile(
      "rolq $3, %%rdi\n\t"
      "rolq $13, %%rdi\n\t"
      "rolq $61, %%rdi\n\t"
      "rolq $51, %%rdi\n\t"
      "xchgq %%rbx, %%rbx\n\t"
      : "+d"(answer)
      : "a"(question)
      : "cc", "memory", "rdi");
#else
  register const uint64_t* x4 __asm__("x4") = question;
  register uint64_t x3 __asm__("x3") = 0;
  __asm__ volatile(
      "ror x12, x12, 3\n\t"
      "ror x12, x12, 13\n\t"
      "ror x12, x12, 51\n\t"
      "ror x12, x12, 61\n\t"
      "orr x10, x10, x10\n\t"
      : "+r"(x3)
      : "r"(x4)
      : "cc", "memory", "x12");
  answer = x3;
#endif
  return answer != 0;
}

// If nothing is recorded, the anchor holds only the lock, and making it needs no system call.
static struct weft_anchor lone_anchor;

static bool make_anchor(void) {
  const long page = weft_syscall(__NR_mmap, 0, sizeof(struct weft_anchor), 3 /* read, write */,
                                 MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (weft_failed(page)) return false;
  weft_anchor = (struct weft_anchor*)page;
  return true;
}

// Writes a path of WEFT_PATH_MAX bytes. False: there is no room.
static bool append_path(char* path, const char* folder, const char* container, const char* suffix) {
  char* end = path + WEFT_PATH_MAX;
  return weft_append(&path, end, folder) && weft_append(&path, end, "/") &&
         weft_append(&path, end, container) && weft_append(&path, end, suffix);
}

// Writes the control area's path, WEFT_PATH_MAX bytes, and notes the memory pool's. False: this
// process is not to be traced.
static bool find_control_area(char* path) {
  const char* folder = weft_environment("WEFT_DIR");
  const char* container = weft_environment("WEFT_CONTAINER");
  if (folder == NULL && container != NULL) folder = WEFT_POD_FOLDER;
  if (folder == NULL || folder[0] != '/' || weft_auxiliary(AT_SECURE) != 0) return false;
  char* at = weft_process.folder;
  if (!weft_append(&at, at + WEFT_PATH_MAX, folder)) return false;

  if (container == NULL) container = "local";
  return append_path(path, folder, container, ".ctl") &&
         append_path(weft_process.memory_pool, folder, container, WEFT_MEMORY_POOL_SUFFIX);
}

static bool start(void) {
  char path[WEFT_PATH_MAX];
  weft_anchor = &lone_anchor;
  if (!find_control_area(path)) return false;
  weft_process.filter = weft_seccomp_is_filtered() ? WEFT_FILTER_UNTRIED : WEFT_FILTER_NONE;
  if (!weft_control_area_start(path) || !make_anchor()) return false;
  weft_process.on_valgrind = is_on_valgrind();
  // It fails before Linux 4.14, where a child would write into its parent's rings.
  if (weft_process.filter == WEFT_FILTER_NONE &&
      !weft_wipe_on_fork(weft_anchor, sizeof(*weft_anchor))) {
    return false;
  }
  find_rseq();
  if (weft_process.clock == WEFT_CLOCK_MONOTONIC) weft_clock_learn_offset();
  weft_doorbell_start();
  weft_statedump_start();
  weft_ring_set_made = weft_statedump;
  return true;
}

bool weft_process_ready(void) {
  // acquire: pairs with the release below; the state's readers see what it stands for
  uint32_t state = __atomic_load_n(&weft_process.state, __ATOMIC_ACQUIRE);
  if (state == WEFT_PROCESS_NEW) {
    // Constructors run on one thread; the first call of a process is from one.
    state = start() ? WEFT_PROCESS_READY : WEFT_PROCESS_OFF;
    // release: everything that start() filled in
    __atomic_store_n(&weft_process.state, state, __ATOMIC_RELEASE);
  }
  return state == WEFT_PROCESS_READY;
}

// --- trial ---------------------------------------------------------------------------------------

static int find_undecided(void* data, struct weft_registry_entry* entry) {
  struct weft_event* event = entry->event;
  // relaxed: as in emit_words
  if (event == NULL || __atomic_load_n(event->enabled, __ATOMIC_RELAXED) == 0) return 0;
  const struct weft_event_state* state = event->state;
  if ((uint32_t)state->key == *event->enabled) return 0;
  *(struct weft_event**)data = event;
  return 1;
}

bool weft_process_is_any_event_on(void) {
  uint64_t mask;
  struct weft_event* event = NULL;
  if (!weft_lock(&mask)) return true;
  weft_registry_each(find_undecided, &event);
  weft_unlock(mask);
  return event != NULL;
}

void weft_process_try_early(void) {
  // relaxed: decided again under the lock
  if (__atomic_load_n(&weft_process.filter, __ATOMIC_RELAXED) == WEFT_FILTER_UNTRIED &&
      !weft_silent && !weft_is_threaded() && weft_process_is_any_event_on()) {
    (void)weft_seccomp_may_call();
  }
}

// --- turning off ---------------------------------------------------------------------------------

void weft_process_make_everything(void) {
  uint64_t mask;
  struct weft_event* event = NULL;
  const struct weft_ruleset* rules = NULL;
  do {
    event = NULL;
    if (!weft_lock(&mask)) return;
    weft_registry_each(find_undecided, &event);
    rules = weft_rules();
    weft_unlock(mask);
  } while (event != NULL && weft_emit_decide(event, *event->enabled) != NULL);
  if (rules == NULL) return;
  weft_hooks_make_everything();
  for (uint32_t i = 0; i < WEFT_MAX_CHANNELS; ++i) {
    if (weft_channels[i].id != 0) weft_ring_set_make(i);
  }
  weft_vpid();
  weft_thread_id();
  weft_own_rseq();
  weft_thread_self();
  weft_keep_reserve();
  if (weft_lock(&mask)) {
    weft_reserve_memory();
    weft_unlock(mask);
  }
}

void weft_process_pause(void) {
  // relaxed: the kernel forbids the instruction to this thread only, which obeys at once
  __atomic_store_n(&weft_process.no_clock, 1, __ATOMIC_RELAXED);
}

void weft_process_resume(void) {
  // relaxed: as above
  __atomic_store_n(&weft_process.no_clock, 0, __ATOMIC_RELAXED);
}

void weft_process_turn_off(void) {
  weft_process_pause();
  for (uint32_t i = 0; i < WEFT_MAX_CHANNELS; ++i) {
    weft_ring_set_withdraw(&weft_anchor->channels[i]);
  }
}

// --- end -----------------------------------------------------------------------------------------

#define WEFT_REPORT_TRIES 500u
static const int64_t report_pause[2] = {0, 10000000};  // 10 ms

static void report_in_helper(void* result) { *(long*)result = weft_doorbell_report(UINT32_MAX); }

static void report_in_helper_thread(void* result) {
  report_in_helper(result);
  if (*(long*)result != -EMFILE) return;
  weft_helper_close_copies();
  report_in_helper(result);
}

static long report_missing(void) {
  uint64_t mask;
  long result = 0;
  if (!weft_lock(&mask)) return result;
  if (!weft_is_threaded()) report_in_helper(&result);
  if ((weft_is_threaded() || result == -EMFILE) &&
      !weft_helper_thread_run(report_in_helper_thread, &result)) {
    report_in_helper(&result);
  }
  weft_unlock(mask);
  return result;
}

// Reports what this process, its parents and its forks could not announce, since there may be no
// later process that does. Waits at most 5 s if the agent does not read and the FIFO is full.
__attribute__((destructor)) static void at_end(void) {
  if (!weft_doorbell_has_missing() || !weft_seccomp_may_call()) return;
  for (uint32_t n = 0; n < WEFT_REPORT_TRIES && report_missing() == -EAGAIN; ++n) {
    weft_syscall(__NR_nanosleep, report_pause, 0);
  }
}
