// SPDX-License-Identifier: Apache-2.0
// See helper_task.h.
#include "ust-injector/preload/helper_task.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>

#include "ust-injector/preload/process.h"

#define WEFT_HELPER_STACK_BYTES 16384

#define WEFT_END_YIELDS 1000

// Signals are blocked in the callers and so in what runs here: no handler of the program uses it.
static struct {
  uint8_t bytes[WEFT_HELPER_STACK_BYTES];
  void (*fn)(void*);
  void* arg;
} stack __attribute__((aligned(16)));

// glibc sets this to false as soon as a second thread is made. It is weak, and so NULL in other
// libcs and before 2.32.
extern char __libc_single_threaded __attribute__((weak));

bool weft_is_threaded(void) {
  if (weft_process.shares_tls) return true;
  if (&__libc_single_threaded != NULL && __libc_single_threaded) return false;
  // A folder has two links and one for each folder in it. Without /proc: perhaps.
  struct stat tasks = {0};
  return weft_syscall(__NR_newfstatat, AT_FDCWD, "/proc/self/task", &tasks, 0) != 0 ||
         tasks.st_nlink != 3;
}

// With CLONE_VFORK the caller sleeps until the helper has left this memory.
static long start(long flags) {
  void* top = &stack.fn;
  long result;
#if defined(__x86_64__)
  register long r10 __asm__("r10") = 0;
  register long r8 __asm__("r8") = 0;
  __asm__ volatile(
      "syscall\n\t"
      "testq %%rax, %%rax\n\t"
      "jnz 1f\n\t"
      "xorl %%ebp, %%ebp\n\t"
      "movq (%%rsp), %%rax\n\t"
      "movq 8(%%rsp), %%rdi\n\t"
      "call *%%rax\n\t"
      "xorl %%edi, %%edi\n\t"
      "movl $60, %%eax\n\t" /* exit: this thread only */
      "syscall\n\t"
      "hlt\n"
      "1:\n\t"
      : "=a"(result)
      : "a"(__NR_clone), "D"(flags), "S"(top), "d"(0), "r"(r10), "r"(r8)
      : "rcx", "r11", "memory");
#else
  register long x0 __asm__("x0") = flags;
  register void* x1 __asm__("x1") = top;
  register long x2 __asm__("x2") = 0;
  register long x3 __asm__("x3") = 0;
  register long x4 __asm__("x4") = 0;
  register long x8 __asm__("x8") = __NR_clone;
  __asm__ volatile(
      "svc 0\n\t"
      "cbnz x0, 1f\n\t"
      "mov x29, 0\n\t"
      "ldp x9, x0, [sp]\n\t"
      "blr x9\n\t"
      "mov x0, 0\n\t"
      "mov x8, 93\n\t" /* exit: this thread only */
      "svc 0\n\t"
      "brk 1\n"
      "1:\n\t"
      : "+r"(x0)
      : "r"(x1), "r"(x2), "r"(x3), "r"(x4), "r"(x8)
      : "x9", "memory");
  result = x0;
#endif
  return result;
}

bool weft_helper_thread_run(void (*fn)(void*), void* arg) {
  if (weft_silent || weft_process.clone_kills || weft_process.on_valgrind) return false;
  stack.fn = fn;
  stack.arg = arg;
  const long tid = start(WEFT_HELPER_THREAD_FLAGS);
  if (tid <= 0) return false;
  // It has left the memory, but for some microseconds it still counts as a thread, which some calls
  // of the program (unshare) would refuse.
  for (int i = 0; i < WEFT_END_YIELDS; ++i) {
    if (weft_syscall(__NR_tgkill, weft_syscall(__NR_getpid, 0), tid, 0) == -ESRCH) break;
    weft_syscall(__NR_sched_yield, 0);
  }
  return true;
}

void weft_helper_close_copies(void) {
  int closed = 0;
  for (int fd = 0; fd < 1024 && closed < 2; ++fd) {
    if (weft_syscall(__NR_close, fd) == 0) ++closed;
  }
}

long weft_helper_child_run(void (*fn)(void*), void* arg, bool share_memory) {
  stack.fn = fn;
  stack.arg = arg;
  return start(WEFT_HELPER_CHILD_FLAGS | (share_memory ? WEFT_HELPER_SHARE_MEMORY : 0));
}
