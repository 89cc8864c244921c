// SPDX-License-Identifier: Apache-2.0
// System calls without a libc. They return the kernel's results: a negative errno on failure. The
// program's errno is never changed. Any thread, signal handlers, vfork children.
#ifndef WEFT_UST_INJECTOR_PRELOAD_SYS_H_
#define WEFT_UST_INJECTOR_PRELOAD_SYS_H_

#include <asm/unistd.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#if defined(__x86_64__)
static inline long weft_syscall6(long n, long a, long b, long c, long d, long e, long f) {
  long ret;
  register long r10 __asm__("r10") = d;
  register long r8 __asm__("r8") = e;
  register long r9 __asm__("r9") = f;
  __asm__ volatile("syscall"
                   : "=a"(ret)
                   : "a"(n), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9)
                   : "rcx", "r11", "memory");
  return ret;
}
static inline uintptr_t weft_thread_pointer(void) {
  uintptr_t tp;
  __asm__("movq %%fs:0, %0" : "=r"(tp));
  return tp;
}
#elif defined(__aarch64__)
static inline long weft_syscall6(long n, long a, long b, long c, long d, long e, long f) {
  register long x8 __asm__("x8") = n;
  register long x0 __asm__("x0") = a;
  register long x1 __asm__("x1") = b;
  register long x2 __asm__("x2") = c;
  register long x3 __asm__("x3") = d;
  register long x4 __asm__("x4") = e;
  register long x5 __asm__("x5") = f;
  __asm__ volatile("svc 0"
                   : "+r"(x0)
                   : "r"(x8), "r"(x1), "r"(x2), "r"(x3), "r"(x4), "r"(x5)
                   : "memory");
  return x0;
}
static inline uintptr_t weft_thread_pointer(void) {
  uintptr_t tp;
  __asm__("mrs %0, tpidr_el0" : "=r"(tp));
  return tp;
}
#else
#error "weft supports x86-64 and arm64"
#endif

// Set if a seccomp filter may kill for a call of weft: from then on none reaches the kernel; each
// answers -EPERM. See seccomp.h. Also set by an agent that loaded the library and does not record
// any more (WEFT_SILENT_DETACHED of lib/abi/hooks.h). Inherited by fork.
extern uint32_t weft_silent __attribute__((visibility("hidden")));

// Every call that libweft.so makes for itself goes through this one.
#define weft_syscall(n, ...) WEFT_SYSCALL_(n, __VA_ARGS__, 0, 0, 0, 0, 0, 0)
#define WEFT_SYSCALL_(n, a, b, c, d, e, f, ...) \
  (__builtin_expect(weft_silent != 0, 0)        \
       ? -1L                                    \
       : weft_syscall6(n, (long)(a), (long)(b), (long)(c), (long)(d), (long)(e), (long)(f)))

// Is a call's result a negative errno? Use it for calls whose result may be an address.
static inline bool weft_failed(long result) { return result < 0 && result > -4096; }

#endif  // WEFT_UST_INJECTOR_PRELOAD_SYS_H_
