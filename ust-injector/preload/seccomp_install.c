// SPDX-License-Identifier: Apache-2.0
// See seccomp_install.h.
#include "ust-injector/preload/seccomp_install.h"

#include <fcntl.h>
#include <linux/audit.h>
#include <linux/memfd.h>
#include <linux/mman.h>
#include <linux/prctl.h>
#include <linux/un.h>
#include <sys/socket.h>

#include "ust-injector/preload/bpf.h"
#include "ust-injector/preload/helper_task.h"
#include "ust-injector/preload/lifecycle.h"
#include "ust-injector/preload/seccomp.h"

#if defined(__x86_64__)
#define WEFT_AUDIT_ARCH AUDIT_ARCH_X86_64
#else
#define WEFT_AUDIT_ARCH AUDIT_ARCH_AARCH64
#endif

// Every call that weft makes after start-up; seccomp.c tries the same ones.
static const struct weft_system_call calls[] = {
    {__NR_memfd_create, {WEFT_SOME_ADDRESS, MFD_CLOEXEC | MFD_ALLOW_SEALING | 8}},
    {__NR_ftruncate, {WEFT_SOME_FD, 4096}},
    {__NR_mmap, {0, 4096, 0, MAP_SHARED | MAP_NORESERVE, WEFT_SOME_FD}},
    {__NR_mmap, {0, 4096, 3, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, (uint64_t)-1}},
    {__NR_munlock, {WEFT_SOME_ADDRESS, 4096}},
    {__NR_madvise, {WEFT_SOME_ADDRESS, 4096, MADV_DONTFORK}},
    {__NR_madvise, {WEFT_SOME_ADDRESS, 4096, MADV_DONTDUMP}},
    {__NR_madvise, {WEFT_SOME_ADDRESS, 4096, MADV_WIPEONFORK}},
    {__NR_mprotect, {WEFT_SOME_ADDRESS, 4096, 3}},
    {__NR_munmap, {WEFT_SOME_ADDRESS, 4096}},
    {__NR_fcntl, {WEFT_SOME_FD, 1033, 7}},
    {__NR_close, {WEFT_SOME_FD}},
    {__NR_socket, {AF_UNIX, WEFT_SOCKET_TYPE, 0}},
    {__NR_connect, {WEFT_SOME_FD, WEFT_SOME_ADDRESS, sizeof(struct sockaddr_un)}},
    {__NR_sendmsg, {WEFT_SOME_FD, WEFT_SOME_ADDRESS, MSG_DONTWAIT | MSG_NOSIGNAL}},
    {__NR_getrandom, {WEFT_SOME_ADDRESS, 8, 1}},
    {__NR_prctl, {PR_GET_NAME, WEFT_SOME_ADDRESS}},
    {__NR_rt_sigprocmask, {2, WEFT_SOME_ADDRESS, WEFT_SOME_ADDRESS, 8}},
    {__NR_rt_sigprocmask, {(uint64_t)WEFT_PEEK_NO_HOW, WEFT_SOME_ADDRESS, 0, 8}},
    {__NR_gettid, {0}},
    {__NR_getpid, {0}},
    {__NR_getuid, {0}},
    {__NR_sched_yield, {0}},
    {__NR_tkill, {WEFT_SOME_FD, 0}},
    {__NR_tgkill, {WEFT_SOME_FD, WEFT_SOME_FD, 0}},
    {__NR_newfstatat, {(uint64_t)AT_FDCWD, WEFT_SOME_ADDRESS, WEFT_SOME_ADDRESS, 0}},
    {__NR_waitid, {1, WEFT_SOME_FD, WEFT_SOME_ADDRESS, 5}},
    {__NR_prlimit64, {0, 1, 0, WEFT_SOME_ADDRESS}},
};

static const struct weft_system_call rseq = {__NR_rseq,
                                             {WEFT_SOME_ADDRESS, 32, 0, WEFT_RSEQ_SIGNATURE}};
static const struct weft_system_call helper_thread = {
    __NR_clone, {WEFT_HELPER_THREAD_FLAGS, WEFT_SOME_ADDRESS}};
static const struct weft_system_call trial_children[] = {
    {__NR_clone, {WEFT_HELPER_CHILD_FLAGS, WEFT_SOME_ADDRESS}},
    {__NR_clone, {WEFT_HELPER_CHILD_FLAGS | WEFT_HELPER_SHARE_MEMORY, WEFT_SOME_ADDRESS}},
};

// Returns false if the call would end the program, signal it or wait for a supervisor.
static bool is_survived(const void* code, uint32_t length, const struct weft_system_call* call) {
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

// What a filter that is about to be installed would do to weft's calls.
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
    if (!is_survived(code, length, &weft_optional_calls[i])) v.call_kills |= 1u << i;
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
  if (weft_failed(map)) return the_worst;
  void* code = (void*)map;
  seen = weft_seccomp_peek(code, (uintptr_t)program.filter, size);
  if (seen == WEFT_PEEK_COPIED) v = judge(code, program.len);
  if (seen == WEFT_PEEK_UNKNOWN) v = the_worst;
  weft_syscall(__NR_munmap, map, size);
  return v;
}

// With TSYNC a positive result is a thread that could not be put under the filter; with
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
  weft_process_pause();
  weft_silent = 1;
  const long result = call_kernel(nr, args);
  if (result < 0) {
    weft_silent = was_silent;
    weft_process_resume();
  } else {
    weft_process_turn_off();
  }
  return result;
}

// At this point only calls that ld.so makes are allowed. The kernel reads the filter first, so
// reading it here is safe, too. As long as there can be a trial, it finds out what the filter lets
// pass.
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
    weft_process_make_everything();
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
  // An agent may wake the library just now.
  if (weft_silent == WEFT_SILENT_DETACHED) weft_process.filter = WEFT_FILTER_UNTRIED;
  if (!ours) return call_kernel(nr, args);
  if (!weft_seccomp_may_peek()) {
    if (!weft_process_is_any_event_on()) return install_before_trial(nr, args, filter);
    if (!weft_seccomp_may_call()) return call_kernel(nr, args);
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
