/* SPDX-License-Identifier: Apache-2.0 */
/* fork and clone by system calls that no library sees, and by syscall(). */
#include <signal.h>
#include <sys/syscall.h>

#include "hit.h"

static pid_t fork_unseen(void) {
  long result;
#if defined(__x86_64__)
  register long r10 __asm__("r10") = 0;
  register long r8 __asm__("r8") = 0;
  __asm__ volatile("syscall"
                   : "=a"(result)
                   : "a"(SYS_clone), "D"((long)SIGCHLD), "S"(0L), "d"(0L), "r"(r10), "r"(r8)
                   : "rcx", "r11", "memory");
#else
  result = syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0);
#endif
  return (pid_t)result;
}

int main(void) {
  hit_many(50);
  for (int i = 0; i < 20; ++i) {
    const pid_t child =
        i % 2 ? fork_unseen() : (pid_t)syscall(SYS_clone, (long)SIGCHLD, 0L, 0L, 0L, 0L);
    REQUIRE(child >= 0);
    if (child == 0) {
      hit_many(50);
      _exit(3);
    }
    say_end("child", child);
    hit();
  }
  report();
  return 0;
}
