// SPDX-License-Identifier: Apache-2.0
// See seccomp.h.
#include "ust-injector/preload/seccomp.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/memfd.h>
#include <linux/mman.h>
#include <linux/prctl.h>
#include <linux/un.h>
#include <sys/socket.h>

#include "ust-injector/preload/apart.h"
#include "ust-injector/preload/bpf.h"
#include "ust-injector/preload/channel.h"
#include "ust-injector/preload/clock.h"
#include "ust-injector/preload/decide.h"
#include "ust-injector/preload/keep.h"
#include "ust-injector/preload/own_rseq.h"
#include "ust-injector/preload/registry.h"
#include "ust-injector/preload/thread.h"

#define WEFT_SOCK (SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK)
#define WEFT_WCLONE \
  0x80000000L        /* __WCLONE: children that end without SIGCHLD, which are not the program's */
#define WEFT_FD 1000 /* stands for "some descriptor" */
#define WEFT_ADDRESS 0x7f0000001000

#if defined(__x86_64__)
#define WEFT_AUDIT_ARCH AUDIT_ARCH_X86_64
#else
#define WEFT_AUDIT_ARCH AUDIT_ARCH_AARCH64
#endif

// --- A filter that was there before us -----------------------------------------------------------

bool weft_seccomp_is_filtered(void) {
  static const char key[] = "\nSeccomp:\t";
  const long fd = weft_syscall(__NR_openat, AT_FDCWD, "/proc/self/status", O_RDONLY | O_CLOEXEC, 0);
  if (fd < 0) return weft_syscall(__NR_prctl, PR_GET_SECCOMP) > 0;  // no /proc here
  char bytes[1024];
  size_t matched = 0;
  char mode = '0';
  for (bool found = false; !found;) {
    const long n = weft_syscall(__NR_read, fd, bytes, sizeof(bytes));
    if (n <= 0) break;
    for (long i = 0; i < n && !found; ++i) {
      if (matched == sizeof(key) - 1) {
        mode = bytes[i];
        found = true;
      } else if (bytes[i] == key[matched]) {
        ++matched;
      } else {
        matched = bytes[i] == key[0];
      }
    }
  }
  weft_syscall(__NR_close, fd);
  return mode != '0';
}

struct call {
  int nr;
  uint64_t args[6];
};

// Indexed by enum weft_call. Tried with these very arguments: NULL instead of memory, so that
// nothing is written.
static const struct call optional_calls[WEFT_CALLS] = {
    [WEFT_CALL_OPENAT] = {__NR_openat, {(uint64_t)AT_FDCWD, 0, O_RDONLY | O_CLOEXEC}},
    [WEFT_CALL_READ] = {__NR_read, {WEFT_FD, 0, 0}},
    [WEFT_CALL_PROCESS_VM_READV] = {__NR_process_vm_readv, {0x7fffffff, 0, 0, 0, 0, 0}},
    [WEFT_CALL_READLINKAT] = {__NR_readlinkat, {(uint64_t)AT_FDCWD, 0, 0, 64}},
    [WEFT_CALL_GETRESUID] = {__NR_getresuid, {0, 0, 0}},
    [WEFT_CALL_GETRESGID] = {__NR_getresgid, {0, 0, 0}},
    [WEFT_CALL_GETRUSAGE] = {__NR_getrusage, {1 /* RUSAGE_THREAD */, 0}},
    [WEFT_CALL_CLOCK_GETTIME] = {__NR_clock_gettime, {3 /* CLOCK_THREAD_CPUTIME_ID */, 0}},
    [WEFT_CALL_PERF_EVENT_OPEN] = {__NR_perf_event_open,
                                   {0, 0x7fffffff, (uint64_t)-1, (uint64_t)-1, 8}},
    [WEFT_CALL_NANOSLEEP] = {__NR_nanosleep, {0, 0}},
};

// Shared with the child, whether or not it shares all memory.
struct trial {
  uint32_t waiting_works;  // wait4 does not kill
  uint32_t done;
  uint32_t rseq_works;  // what it answers is another matter
  uint32_t optional;    // how many of optional_calls were begun; WEFT_CALLS + 1: all survived
};

// Those that were not begun yet. A child that dies in one leaves the rest to the next child.
static void make_optional_calls(void* arg) {
  struct trial* trial = arg;
  for (uint32_t i = trial->optional; i < WEFT_CALLS; ++i) {
    const struct call* c = &optional_calls[i];
    // release: for symmetry
    __atomic_store_n(&trial->optional, i + 1, __ATOMIC_RELEASE);
    weft_syscall(c->nr, c->args[0], c->args[1], c->args[2], c->args[3], c->args[4], c->args[5]);
  }
  // release: as above
  __atomic_store_n(&trial->optional, WEFT_CALLS + 1, __ATOMIC_RELEASE);
}

// Every call that weft makes in a program after start-up, with the arguments that filters look at.
static void make_all_calls(void* arg) {
  struct trial* trial = arg;
  const uint64_t core[2] = {1, 1};  // 1: no core file, and no pipe of core_pattern either
  uint64_t mask = ~0ull, word = 0;
  struct sockaddr_un nobody = {.sun_family = AF_UNIX, .sun_path = "\0weft-nobody"};
  char name[16];
  weft_syscall(__NR_prlimit64, 0, 4 /* RLIMIT_CORE */, core, 0);
  weft_syscall(__NR_rt_sigprocmask, 2, &mask, 0, sizeof(mask));
  weft_syscall(__NR_rt_sigprocmask, WEFT_PEEK_NO_HOW, &mask, 0, sizeof(mask));
  weft_syscall(__NR_wait4, -1, 0, WEFT_WCLONE | 1 /* WNOHANG */, 0);
  // release: the calls above were survived
  __atomic_store_n(&trial->waiting_works, 1, __ATOMIC_RELEASE);

  const long fd =
      weft_syscall(__NR_memfd_create, WEFT_RING_MEMFD_NAME, MFD_CLOEXEC | MFD_ALLOW_SEALING);
  weft_syscall(__NR_ftruncate, fd, 4096);
  const long map = weft_syscall(__NR_mmap, 0, 4096, 0, MAP_SHARED | MAP_NORESERVE, fd, 0);
  weft_syscall(__NR_munlock, map, 4096);
  weft_syscall(__NR_madvise, map, 4096, MADV_DONTFORK);
  weft_syscall(__NR_madvise, map, 4096, MADV_DONTDUMP);
  weft_syscall(__NR_madvise, map, 4096, MADV_WIPEONFORK);
  weft_syscall(__NR_mprotect, map, 4096, 3);
  weft_syscall(__NR_fcntl, fd, 1033 /* F_ADD_SEALS */, 7);
  if (map > 0 || map < -4095) weft_syscall(__NR_munmap, map, 4096);
  weft_syscall(__NR_close, fd);
  const long s = weft_syscall(__NR_socket, AF_UNIX, WEFT_SOCK, 0);
  weft_syscall(__NR_connect, s, &nobody, sizeof(nobody));
  weft_syscall(__NR_sendmsg, s, 0, MSG_DONTWAIT | MSG_NOSIGNAL);
  weft_syscall(__NR_close, s);
  weft_syscall(__NR_getrandom, &word, sizeof(word), 1);
  weft_syscall(__NR_prctl, PR_GET_NAME, name);
  weft_syscall(__NR_gettid, 0);
  weft_syscall(__NR_getpid, 0);
  weft_syscall(__NR_getuid, 0);
  weft_syscall(__NR_sched_yield, 0);
  weft_syscall(__NR_tkill, 0x7fffffff, 0);
  weft_syscall(__NR_tgkill, 0x7fffffff, 0x7fffffff, 0);
  weft_syscall(__NR_waitid, 1, 0x7fffffff, 0, 1, 0);
  // release: likewise
  __atomic_store_n(&trial->done, 1, __ATOMIC_RELEASE);
  if (weft_process.own_rseq) {
    weft_syscall(__NR_rseq, 0, 0, 0, 0);
    // release: likewise
    __atomic_store_n(&trial->rseq_works, 1, __ATOMIC_RELEASE);
  }
  make_optional_calls(trial);
}

// Another thread may have reaped it: then there is no such child. A child of the program's that was
// given its number since then ends with SIGCHLD and is left alone.
static void wait_for(long child) {
  while (weft_syscall(__NR_wait4, child, 0, WEFT_WCLONE, 0) == -EINTR) {
  }
}

// Goes on behind every call that ended a child.
static void try_the_rest(struct trial* trial, bool share) {
  for (;;) {
    // acquire: pairs with the child's releases; it has ended
    const uint32_t begun = __atomic_load_n(&trial->optional, __ATOMIC_ACQUIRE);
    if (begun > WEFT_CALLS) return;
    if (begun != 0) weft_process.call_kills |= 1u << (begun - 1);
    const long pid = weft_run_in_child(make_optional_calls, trial, share);
    if (pid <= 0) {
      weft_process.call_kills = (1u << WEFT_CALLS) - 1;
      return;
    }
    wait_for(pid);
  }
}

bool weft_seccomp_try(void) {
  const long page = weft_syscall(__NR_mmap, 0, 4096, 3, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (page < 0 && page > -4096) return false;
  struct trial* trial = (struct trial*)page;
  // Linux before 5.16 ends all processes that share the memory of one that dumps core; the
  // auxiliary vector tells of 6.3 and later without a call.
  const bool share = weft_auxiliary(27 /* AT_RSEQ_FEATURE_SIZE */) != 0;
  const long pid = weft_run_in_child(make_all_calls, trial, share);
  // acquire: pairs with the child's releases; it has ended
  const bool good = __atomic_load_n(&trial->done, __ATOMIC_ACQUIRE) != 0;
  weft_process.rseq_kills = __atomic_load_n(&trial->rseq_works, __ATOMIC_ACQUIRE) == 0;
  if (pid > 0 && __atomic_load_n(&trial->waiting_works, __ATOMIC_ACQUIRE)) wait_for(pid);
  if (pid > 0 && good) try_the_rest(trial, share);
  weft_syscall(__NR_munmap, page, 4096);
  return pid > 0 && good;
}

// --- A filter that is about to be installed ------------------------------------------------------

static const struct call calls[] = {
    {__NR_memfd_create, {WEFT_ADDRESS, MFD_CLOEXEC | MFD_ALLOW_SEALING | 8}},
    {__NR_ftruncate, {WEFT_FD, 4096}},
    {__NR_mmap, {0, 4096, 0, MAP_SHARED | MAP_NORESERVE, WEFT_FD}},
    {__NR_mmap, {0, 4096, 3, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, (uint64_t)-1}},
    {__NR_munlock, {WEFT_ADDRESS, 4096}},
    {__NR_madvise, {WEFT_ADDRESS, 4096, MADV_DONTFORK}},
    {__NR_madvise, {WEFT_ADDRESS, 4096, MADV_DONTDUMP}},
    {__NR_madvise, {WEFT_ADDRESS, 4096, MADV_WIPEONFORK}},
    {__NR_mprotect, {WEFT_ADDRESS, 4096, 3}},
    {__NR_munmap, {WEFT_ADDRESS, 4096}},
    {__NR_fcntl, {WEFT_FD, 1033, 7}},
    {__NR_close, {WEFT_FD}},
    {__NR_socket, {AF_UNIX, WEFT_SOCK, 0}},
    {__NR_connect, {WEFT_FD, WEFT_ADDRESS, sizeof(struct sockaddr_un)}},
    {__NR_sendmsg, {WEFT_FD, WEFT_ADDRESS, MSG_DONTWAIT | MSG_NOSIGNAL}},
    {__NR_getrandom, {WEFT_ADDRESS, 8, 1}},
    {__NR_prctl, {PR_GET_NAME, WEFT_ADDRESS}},
    {__NR_rt_sigprocmask, {2, WEFT_ADDRESS, WEFT_ADDRESS, 8}},
    {__NR_rt_sigprocmask, {(uint64_t)WEFT_PEEK_NO_HOW, WEFT_ADDRESS, 0, 8}},
    {__NR_gettid, {0}},
    {__NR_getpid, {0}},
    {__NR_getuid, {0}},
    {__NR_sched_yield, {0}},
    {__NR_tkill, {WEFT_FD, 0}},
    {__NR_tgkill, {WEFT_FD, WEFT_FD, 0}},
    {__NR_newfstatat, {(uint64_t)AT_FDCWD, WEFT_ADDRESS, WEFT_ADDRESS, 0}},
    {__NR_waitid, {1, WEFT_FD, WEFT_ADDRESS, 5}},
    {__NR_prlimit64, {0, 1, 0, WEFT_ADDRESS}},
};

static const struct call rseq = {__NR_rseq, {WEFT_ADDRESS, 32, 0, WEFT_RSEQ_SIGNATURE}};
static const struct call helper_thread = {__NR_clone, {WEFT_APART_THREAD_FLAGS, WEFT_ADDRESS}};
static const struct call trial_children[] = {
    {__NR_clone, {WEFT_APART_CHILD_FLAGS, WEFT_ADDRESS}},
    {__NR_clone, {WEFT_APART_CHILD_FLAGS | WEFT_APART_SHARE_MEMORY, WEFT_ADDRESS}},
};

// False: the call would end the program, signal it or wait for a supervisor.
static bool is_survived(const void* code, uint32_t length, const struct call* call) {
  struct seccomp_data data = {.nr = call->nr,
                              .arch = WEFT_AUDIT_ARCH,
                              .instruction_pointer = (uintptr_t)&weft_process_ready};
  memcpy(data.args, call->args, sizeof(data.args));
  switch (weft_bpf_run(code, length, &data) & SECCOMP_RET_ACTION_FULL) {
    case SECCOMP_RET_ALLOW:
    case SECCOMP_RET_LOG:
    case SECCOMP_RET_ERRNO:
    case SECCOMP_RET_TRACE:
      return true;
    default:
      return false;
  }
}

static bool all_survived(const void* code, uint32_t length) {
  for (size_t i = 0; i < sizeof(calls) / sizeof(calls[0]); ++i) {
    if (!is_survived(code, length, &calls[i])) return false;
  }
  return true;
}

static int find_undecided(void* data, struct weft_registry_entry* entry) {
  struct weft_event* event = entry->event;
  // relaxed: as in emit_words
  if (event == NULL || __atomic_load_n(event->enabled, __ATOMIC_RELAXED) == 0) return 0;
  const struct weft_event_state* state = event->state;
  if ((uint32_t)state->key == *event->enabled) return 0;
  *(struct weft_event**)data = event;
  return 1;
}

bool weft_seccomp_may_peek(void) {
  // relaxed: the trial's outcome, published by the lock's release
  return weft_process_ready() && !weft_silent &&
         __atomic_load_n(&weft_process.filter, __ATOMIC_RELAXED) == WEFT_FILTER_NONE;
}

static bool is_any_event_on(void) {
  uint64_t mask;
  struct weft_event* event = NULL;
  if (!weft_lock(&mask)) return true;
  weft_registry_each(find_undecided, &event);
  weft_unlock(mask);
  return event != NULL;
}

void weft_seccomp_try_early(void) {
  // relaxed: decided again under the lock
  if (__atomic_load_n(&weft_process.filter, __ATOMIC_RELAXED) == WEFT_FILTER_UNTRIED &&
      !weft_silent && !weft_is_threaded() && is_any_event_on()) {
    (void)weft_process_may_call();
  }
}

// Everything that events in force need later, while the kernel may still be called.
static void make_everything(void) {
  uint64_t mask;
  struct weft_event* event = NULL;
  const struct weft_ruleset* rules = NULL;
  do {
    event = NULL;
    if (!weft_lock(&mask)) return;
    weft_registry_each(find_undecided, &event);
    rules = weft_rules();
    weft_unlock(mask);
  } while (event != NULL && weft_decide(event, *event->enabled) != NULL);
  if (rules == NULL) return;
  for (uint32_t i = 0; i < WEFT_MAX_CHANNELS; ++i) {
    if (weft_channels[i].id != 0) weft_channel_make_ring(i);
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

// What a filter that is about to be installed would do to calls of ours.
struct verdict {
  bool silence;   // it kills for one that cannot be left out
  bool no_trial;  // it kills for what makes the trial's child
  bool clone_kills;
  bool rseq_kills;
  uint32_t call_kills;
};

static const struct verdict the_worst = {true, true, true, true, (1u << WEFT_CALLS) - 1};

static struct verdict judge(const void* code, uint32_t length) {
  struct verdict v = {.silence = !all_survived(code, length),
                      .no_trial = !is_survived(code, length, &trial_children[0]) ||
                                  !is_survived(code, length, &trial_children[1]),
                      .clone_kills = !is_survived(code, length, &helper_thread),
                      .rseq_kills = !is_survived(code, length, &rseq)};
  for (uint32_t i = 0; i < WEFT_CALLS; ++i) {
    if (!is_survived(code, length, &optional_calls[i])) v.call_kills |= 1u << i;
  }
  return v;
}

// The kernel refuses a filter that it cannot read: nothing comes of it. One that only we cannot
// read is taken for one that kills for everything.
static struct verdict judge_before(uint64_t at) {
  struct verdict v = {0};
  struct sock_fprog program;
  enum weft_peek seen = weft_seccomp_peek(&program, at, sizeof(program));
  if (seen != WEFT_PEEK_COPIED) return seen == WEFT_PEEK_FAULT ? v : the_worst;
  if (program.len == 0 || program.len > BPF_MAXINSNS) return v;
  const uint64_t size = program.len * sizeof(struct sock_filter);
  const long map =
      weft_syscall(__NR_mmap, 0, size, 3, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (map < 0 && map > -4096) return the_worst;
  void* code = (void*)map;
  seen = weft_seccomp_peek(code, (uintptr_t)program.filter, size);
  if (seen == WEFT_PEEK_COPIED) v = judge(code, program.len);
  if (seen == WEFT_PEEK_UNKNOWN) v = the_worst;
  weft_syscall(__NR_munmap, map, size);
  return v;
}

// With TSYNC a positive result is a thread that could not be brought under the filter; with
// NEW_LISTENER it is a descriptor.
static bool is_refused(long nr, const long args[5], long result) {
  return result < 0 || ((int)nr == __NR_seccomp && result > 0 &&
                        ((uint32_t)args[1] & SECCOMP_FILTER_FLAG_NEW_LISTENER) == 0);
}

static long call_kernel(long nr, const long args[5]) {
  return weft_syscall6(nr, args[0], args[1], args[2], args[3], args[4], 0);
}

// Strict mode takes the time stamp counter away as well, so nothing can be recorded in it.
static long install_strict(long nr, const long args[5]) {
  const uint32_t was_silent = weft_silent;
  const bool ours = weft_process_ready() && weft_process.vforked == 0 && !weft_process.no_clock;
  if (!ours) return call_kernel(nr, args);
  weft_clock_pause();
  weft_silent = 1;
  const long result = call_kernel(nr, args);
  if (result < 0) {
    weft_silent = was_silent;
    weft_clock_resume();
  } else {
    weft_clock_is_forbidden();
  }
  return result;
}

// Nothing but ld.so's calls may be made yet: the kernel reads the filter first, so that it can be
// read here too. What the filter lets pass is for the trial to find out, as long as there can be
// one.
static long install_before_trial(long nr, const long args[5], uint64_t filter) {
  const long result = call_kernel(nr, args);
  if (is_refused(nr, args, result)) return result;
  struct sock_fprog program;
  memcpy(&program, (const void*)filter, sizeof(program));
  const struct verdict v = judge(program.filter, program.len);
  if (v.silence || v.no_trial) weft_silent = 1;
  if (v.clone_kills) weft_process.clone_kills = true;
  return result;
}

static long install_after_look(long nr, const long args[5], uint64_t filter) {
  const struct verdict v = judge_before(filter);
  const uint32_t clone_killed = weft_process.clone_kills, rseq_killed = weft_process.rseq_kills;
  const uint32_t added = v.call_kills & ~weft_process.call_kills;
  if (v.clone_kills) weft_process.clone_kills = true;
  if (v.rseq_kills) weft_process.rseq_kills = true;
  if (v.silence) {
    make_everything();
    weft_silent = 1;
  }
  weft_process.call_kills |= added;
  const long result = call_kernel(nr, args);
  if (is_refused(nr, args, result)) {
    weft_process.call_kills &= ~added;
    weft_process.clone_kills = clone_killed;
    weft_process.rseq_kills = rseq_killed;
    if (v.silence) weft_silent = 0;
  }
  return result;
}

static long install_filter(long nr, const long args[5], uint64_t filter) {
  const bool ours = weft_process_ready() && !weft_silent && weft_process.vforked == 0;
  if (!ours) return call_kernel(nr, args);
  if (!weft_seccomp_may_peek()) {
    if (!is_any_event_on()) return install_before_trial(nr, args, filter);
    if (!weft_process_may_call()) return call_kernel(nr, args);
  }
  return install_after_look(nr, args, filter);
}

bool weft_seccomp_installs(long nr, const long args[5], long* result) {
  bool strict = false;
  uint64_t filter = 0;
  if ((int)nr == __NR_prctl && (int)args[0] == PR_SET_SECCOMP) {
    strict = args[1] == SECCOMP_MODE_STRICT;
    if (args[1] == SECCOMP_MODE_FILTER) filter = (uint64_t)args[2];
  } else if ((int)nr == __NR_seccomp) {
    // The kernel refuses strict mode with flags or an argument.
    strict = (uint32_t)args[0] == SECCOMP_SET_MODE_STRICT && (uint32_t)args[1] == 0 && args[2] == 0;
    if ((uint32_t)args[0] == SECCOMP_SET_MODE_FILTER) filter = (uint64_t)args[2];
  }
  if (!strict && filter == 0) return false;
  *result = strict ? install_strict(nr, args) : install_filter(nr, args, filter);
  return true;
}
