/* SPDX-License-Identifier: Apache-2.0 */
/*
 * late_filter HOW WHEN: a filter that kills for everything but write and exit, installed by HOW
 * (strict, prctl, syscall, unseen: by a system call of its own; tsc: only the time stamp counter
 * goes), before or after the first event; then events of both kinds, over many sub-buffers, in a
 * handler too. `deny` refuses what weft calls instead of killing.
 */
#include <signal.h>

#include "filter.h"
#include "hit.h"

static void install(const char* how) {
  static struct sock_filter few[] = {
      FILTER_LOAD_NR,
      FILTER_IF(SYS_write, SECCOMP_RET_ALLOW),
      FILTER_IF(SYS_exit_group, SECCOMP_RET_ALLOW),
      FILTER_IF(SYS_exit, SECCOMP_RET_ALLOW),
      FILTER_IF(SYS_rt_sigreturn, SECCOMP_RET_ALLOW),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
  };
  static struct sock_filter some[64];
  struct sock_fprog program = {sizeof(few) / sizeof(few[0]), few};
  REQUIRE(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0);
  if (strcmp(how, "deny") == 0) {
    program.len = build_filter(some, "memfd_create,socket,madvise,munlock", filter_action("eperm"));
    program.filter = some;
    REQUIRE(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0);
  } else if (strcmp(how, "tsc") == 0) {
    REQUIRE(prctl(PR_SET_TSC, PR_TSC_SIGSEGV) == 0);
  } else if (strcmp(how, "strict") == 0) {
    REQUIRE(prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT) == 0);
  } else if (strcmp(how, "prctl") == 0) {
    REQUIRE(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0);
  } else if (strcmp(how, "syscall") == 0) {
    errno = 0;
    /* Libraries make this call to find out whether it exists. */
    REQUIRE(syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, NULL) == -1 && errno == EFAULT);
    REQUIRE(syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program) == 0);
  } else {
    long result;
    __asm__ volatile("syscall"
                     : "=a"(result)
                     : "a"((long)SYS_seccomp), "D"((long)SECCOMP_SET_MODE_FILTER), "S"(0L),
                       "d"(&program)
                     : "rcx", "r11", "memory");
    REQUIRE(result == 0);
  }
}

static void leave(int status) { syscall(SYS_exit, status); /* strict mode knows no exit_group */ }

int main(int argc, char** argv) {
  REQUIRE(argc == 3);
  if (strcmp(argv[2], "after") == 0) {
    hit();
    hit_text("the second kind");
  }
  install(argv[1]);
  hit_many(4000);
  report();
  leave(5);
  return 0;
}
