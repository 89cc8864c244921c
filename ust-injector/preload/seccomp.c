// SPDX-License-Identifier: Apache-2.0
// See seccomp.h.
#include "ust-injector/preload/seccomp.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/memfd.h>
#include <linux/mman.h>
#include <linux/prctl.h>
#include <linux/un.h>
#include <sys/socket.h>

#include "lib/abi/control.h"
#include "lib/abi/ring.h"
#include "ust-injector/preload/environment.h"
#include "ust-injector/preload/helper_task.h"
#include "ust-injector/preload/lock.h"
#include "ust-injector/preload/memory.h"

#define WEFT_WCLONE \
  0x80000000L /* __WCLONE: children that end without SIGCHLD, which are not the program's */

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

const struct weft_system_call weft_optional_calls[WEFT_CALLS] = {
    [WEFT_CALL_OPENAT] = {__NR_openat, {(uint64_t)AT_FDCWD, 0, O_RDONLY | O_CLOEXEC}},
    [WEFT_CALL_READ] = {__NR_read, {WEFT_SOME_FD, 0, 0}},
    [WEFT_CALL_PROCESS_VM_READV] = {__NR_process_vm_readv, {0x7fffffff, 0, 0, 0, 0, 0}},
    [WEFT_CALL_READLINKAT] = {__NR_readlinkat, {(uint64_t)AT_FDCWD, 0, 0, 64}},
    [WEFT_CALL_GETRESUID] = {__NR_getresuid, {0, 0, 0}},
    [WEFT_CALL_GETRESGID] = {__NR_getresgid, {0, 0, 0}},
    [WEFT_CALL_GETRUSAGE] = {__NR_getrusage, {1 /* RUSAGE_THREAD */, 0}},
    [WEFT_CALL_CLOCK_GETTIME] = {__NR_clock_gettime, {3 /* CLOCK_THREAD_CPUTIME_ID */, 0}},
    [WEFT_CALL_PERF_EVENT_OPEN] = {__NR_perf_event_open,
                                   {0, 0x7fffffff, (uint64_t)-1, (uint64_t)-1, 8}},
    [WEFT_CALL_NANOSLEEP] = {__NR_nanosleep, {0, 0}},
    [WEFT_CALL_OPEN_POOL] = {__NR_openat, {(uint64_t)AT_FDCWD, 0, WEFT_POOL_FLAGS}},
    [WEFT_CALL_FIONREAD] = {__NR_ioctl, {WEFT_SOME_FD, WEFT_FIONREAD, 0}},
    [WEFT_CALL_OPEN_NAMES] = {__NR_openat, {(uint64_t)AT_FDCWD, 0, WEFT_NAMES_FLAGS}},
    // NULL for one descriptor: EFAULT
    [WEFT_CALL_PPOLL] = {__NR_ppoll, {0, 1, 0, 0, 0}},
    [WEFT_CALL_WRITE] = {__NR_write, {WEFT_SOME_FD, 0, sizeof(struct weft_doorbell)}},
};

// Memory of the trial, shared with the child even if the child does not share all memory.
struct trial {
  uint32_t waiting_works;  // wait4 does not kill
  uint32_t done;
  uint32_t rseq_works;  // what it answers is another matter
  uint32_t optional;    // how many of weft_optional_calls were begun; WEFT_CALLS + 1: all survived
};

// Makes the optional calls that were not begun yet. A child that dies in one leaves the rest to the
// next child.
static void make_optional_calls(void* arg) {
  struct trial* trial = arg;
  for (uint32_t i = trial->optional; i < WEFT_CALLS; ++i) {
    const struct weft_system_call* c = &weft_optional_calls[i];
    // release: for symmetry
    __atomic_store_n(&trial->optional, i + 1, __ATOMIC_RELEASE);
    weft_syscall(c->nr, c->args[0], c->args[1], c->args[2], c->args[3], c->args[4], c->args[5]);
  }
  // release: as above
  __atomic_store_n(&trial->optional, WEFT_CALLS + 1, __ATOMIC_RELEASE);
}

// Makes every call that weft makes in a program after start-up, with the arguments that filters
// look at.
static void make_all_calls(void* arg) {
  struct trial* trial = arg;
  const uint64_t core[2] = {1, 1};  // 1: no core file, and no pipe of core_pattern either
  uint64_t mask = ~0ull, word = 0;
  // The bytes are those of an abstract name that no process listens at.
  struct sockaddr_un unused = {.sun_family = AF_UNIX, .sun_path = "\0weft-unused"};
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
  const long s = weft_syscall(__NR_socket, AF_UNIX, WEFT_SOCKET_TYPE, 0);
  weft_syscall(__NR_connect, s, &unused, sizeof(unused));
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
    const long pid = weft_helper_child_run(make_optional_calls, trial, share);
    if (pid <= 0) {
      weft_process.call_kills = (1u << WEFT_CALLS) - 1;
      return;
    }
    wait_for(pid);
  }
}

// Returns true if every call of weft is survived. Under the lock.
static bool try_calls(void) {
  const long page = weft_syscall(__NR_mmap, 0, 4096, 3, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (weft_failed(page)) return false;
  struct trial* trial = (struct trial*)page;
  // Linux before 5.16 ends all processes that share the memory of one that dumps core; the
  // auxiliary vector tells of 6.3 and later without a call.
  const bool share = weft_auxiliary(27 /* AT_RSEQ_FEATURE_SIZE */) != 0;
  const long pid = weft_helper_child_run(make_all_calls, trial, share);
  // acquire: pairs with the child's releases; it has ended
  const bool good = __atomic_load_n(&trial->done, __ATOMIC_ACQUIRE) != 0;
  weft_process.rseq_kills = __atomic_load_n(&trial->rseq_works, __ATOMIC_ACQUIRE) == 0;
  if (pid > 0 && __atomic_load_n(&trial->waiting_works, __ATOMIC_ACQUIRE)) wait_for(pid);
  if (pid > 0 && good) try_the_rest(trial, share);
  weft_syscall(__NR_munmap, page, 4096);
  return pid > 0 && good;
}

bool weft_seccomp_may_call(void) {
  uint64_t mask;
  // relaxed: decided again under the lock
  if (weft_silent) return false;
  if (__atomic_load_n(&weft_process.filter, __ATOMIC_RELAXED) == WEFT_FILTER_NONE) return true;
  if (!weft_lock(&mask)) return false;
  if (weft_process.filter == WEFT_FILTER_UNTRIED && !weft_silent) {
    if (try_calls() && weft_wipe_on_fork(weft_anchor, sizeof(*weft_anchor))) {
      // relaxed: the lock's release publishes it
      __atomic_store_n(&weft_process.filter, WEFT_FILTER_NONE, __ATOMIC_RELAXED);
    } else {
      weft_silent = 1;
    }
  }
  weft_unlock(mask);
  return !weft_silent;
}

bool weft_seccomp_may_peek(void) {
  // relaxed: the trial's outcome, published by the lock's release
  return weft_process_is_ready() && !weft_silent &&
         __atomic_load_n(&weft_process.filter, __ATOMIC_RELAXED) == WEFT_FILTER_NONE;
}
