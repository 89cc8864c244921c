/* SPDX-License-Identifier: Apache-2.0 */
/* Seccomp filters of the matrix: allow everything but the system calls named, which get
 * `action`; or kill for everything but a few. */
#ifndef WEFT_TESTS_MATRIX_FILTER_H_
#define WEFT_TESTS_MATRIX_FILTER_H_

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#define FILTER_LOAD_NR BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr))
#define FILTER_IF(nr, action)                                \
  BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (unsigned)(nr), 0, 1), \
      BPF_STMT(BPF_RET | BPF_K, (unsigned)(action))

struct named_call {
  const char* name;
  int nr;
};

static const struct named_call named_calls[] = {
    {"memfd_create", SYS_memfd_create},
    {"socket", SYS_socket},
    {"rseq", 334},
    {"connect", SYS_connect},
    {"sendmsg", SYS_sendmsg},
    {"ftruncate", SYS_ftruncate},
    {"madvise", SYS_madvise},
    {"fcntl", SYS_fcntl},
    {"getrandom", SYS_getrandom},
    {"prctl", SYS_prctl},
    {"gettid", SYS_gettid},
    {"munlock", SYS_munlock},
    {"sched_yield", SYS_sched_yield},
    {"nanosleep", SYS_nanosleep},
    {"rt_sigprocmask", SYS_rt_sigprocmask},
    {"lseek", SYS_lseek},
    {"getuid", SYS_getuid},
    {"clone", SYS_clone},
    {"getpid", SYS_getpid},
    {"getresuid", SYS_getresuid},
    {"getresgid", SYS_getresgid},
    {"readlinkat", SYS_readlinkat},
    {"process_vm_readv", SYS_process_vm_readv},
    {"perf_event_open", SYS_perf_event_open},
    {"getrusage", SYS_getrusage},
    {"clock_gettime", SYS_clock_gettime},
};

static inline unsigned filter_action(const char* name) {
  if (strcmp(name, "kill") == 0) return 0x80000000u; /* the process */
  if (strcmp(name, "kill-thread") == 0) return 0;
  if (strcmp(name, "trap") == 0) return 0x00030000u;
  if (strcmp(name, "eperm") == 0) return 0x00050000u | 1;
  return 0x00050000u | 38; /* enosys */
}

/* "memfd_create,socket": the number of instructions put into `code` (room for 64). */
static inline unsigned short build_filter(struct sock_filter* code, const char* names,
                                          unsigned action) {
  unsigned short n = 0;
  code[n++] = (struct sock_filter)FILTER_LOAD_NR;
  for (size_t i = 0; i < sizeof(named_calls) / sizeof(named_calls[0]); ++i) {
    const char* found = strstr(names, named_calls[i].name);
    if (!found) continue;
    const struct sock_filter two[] = {FILTER_IF(named_calls[i].nr, action)};
    memcpy(&code[n], two, sizeof(two));
    n += 2;
  }
  code[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
  return n;
}

#endif /* WEFT_TESTS_MATRIX_FILTER_H_ */
