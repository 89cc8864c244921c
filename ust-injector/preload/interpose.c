// SPDX-License-Identifier: Apache-2.0
// The functions of libc that libweft.so stands in front of, because what they do to the process
// must be known before it happens: vfork, clone, prctl, unshare, setns, syscall. Each does exactly
// what libc's does; where another library stands behind us (a sanitizer's interceptor), that one is
// called.
//
// vfork and syscall themselves are in interpose_asm.c.
//
// This file also has __asan_default_options. An ASan runtime that is a shared library refuses to
// start if another library was loaded before it, unless the answer of this function says otherwise.
// If a program defines the function, too, its definition is asked first.
#include <linux/prctl.h>
#include <stdarg.h>

#include "ust-injector/preload/children.h"
#include "ust-injector/preload/clock.h"
#include "ust-injector/preload/interpose.h"
#include "ust-injector/preload/lifecycle.h"
#include "ust-injector/preload/own_rseq.h"
#include "ust-injector/preload/seccomp.h"
#include "ust-injector/preload/seccomp_install.h"

#define WEFT_EXPORT __attribute__((visibility("default")))
#define WEFT_HIDDEN __attribute__((visibility("hidden")))

#define WEFT_CLONE_VM 0x00000100
#define WEFT_CLONE_VFORK 0x00004000
#define WEFT_CLONE3_SMALLEST 64 /* CLONE_ARGS_SIZE_VER0 */

extern int* __errno_location(void) __attribute__((weak));
extern void* dlsym(void* handle, const char* name) __attribute__((weak));
extern void __asan_handle_vfork(void* sp) __attribute__((weak));

struct weft_next weft_next;

static void find_next(void) {
  weft_next.errno_location = __errno_location;
  if (dlsym == NULL) return;
  void* const after_us = (void*)-1l;  // RTLD_NEXT
  weft_next.clone = (int (*)(int (*)(void*), void*, int, void*, ...))dlsym(after_us, "clone");
  weft_next.prctl = (int (*)(int, ...))dlsym(after_us, "prctl");
  weft_next.unshare = (int (*)(int))dlsym(after_us, "unshare");
  weft_next.syscall = dlsym(after_us, "syscall");
}

// In a vfork child or a handler this is ready: a constructor has run.
static __attribute__((constructor)) void on_load(void) { find_next(); }

// Returns a kernel's result as libc returns it.
WEFT_HIDDEN __attribute__((used)) long weft_libc_result(long result) {
  if (result >= 0 || result < -4095) return result;
  if (weft_next.errno_location != NULL) *weft_next.errno_location() = (int)-result;
  return -1;
}

WEFT_HIDDEN __attribute__((used)) long weft_vfork_result(long result, uint64_t locked_before,
                                                         void* sp) {
  weft_after_vfork(result, locked_before);
  if (__asan_handle_vfork != NULL && result > 0) __asan_handle_vfork(sp);
  return weft_libc_result(result);
}

// In interpose_asm.c: clone as libc has it, the child calls fn(arg) on its stack and exits with the
// result.
int weft_raw_clone(int (*fn)(void*), void* stack, long flags, void* arg, void* ptid, void* tls,
                   void* ctid) WEFT_HIDDEN;

WEFT_EXPORT int clone(int (*fn)(void*), void* stack, int flags, void* arg, ...) {
  va_list more;
  va_start(more, arg);
  void* ptid = va_arg(more, void*);
  void* tls = va_arg(more, void*);
  void* ctid = va_arg(more, void*);
  va_end(more);
  const bool shares = (flags & WEFT_CLONE_VM) != 0;
  const bool waits = shares && (flags & WEFT_CLONE_VFORK) != 0;
  uint64_t locked = 0;
  if (waits) {
    locked = weft_before_vfork();
  } else if (shares) {
    weft_before_shared_child();
  }
  long result;
  if (weft_next.clone != NULL) {
    result = weft_next.clone(fn, stack, flags, arg, ptid, tls, ctid);
  } else if (fn == NULL || stack == NULL) {
    result = weft_libc_result(-22 /* EINVAL */);
  } else {
    result = weft_libc_result(weft_raw_clone(fn, stack, flags, arg, ptid, tls, ctid));
  }
  if (waits) weft_after_vfork(result, locked);
  return (int)result;
}

// Returns true if the call makes reads of the time stamp counter raise SIGSEGV; end_pause looks at
// the call's result.
static bool pause_clock(long nr, const long args[5]) {
  if ((int)nr != __NR_prctl || (int)args[0] != PR_SET_TSC || (uint32_t)args[1] != PR_TSC_SIGSEGV ||
      !weft_process_ready() || weft_process.no_clock) {
    return false;
  }
  weft_process_pause();
  return true;
}

static void end_pause(long result) {
  if (result == 0) {
    weft_process_turn_off();
  } else {
    weft_process_resume();
  }
}

WEFT_EXPORT int prctl(int option, ...) {
  va_list more;
  va_start(more, option);
  long args[5] = {option};
  for (int i = 1; i < 5; ++i) args[i] = va_arg(more, long);
  va_end(more);
  long result;
  if (weft_seccomp_installs(__NR_prctl, args, &result)) return (int)weft_libc_result(result);
  const bool pauses = pause_clock(__NR_prctl, args);
  if (weft_next.prctl != NULL) {
    result = weft_next.prctl(option, args[1], args[2], args[3], args[4]);
  } else {
    result =
        weft_libc_result(weft_syscall6(__NR_prctl, args[0], args[1], args[2], args[3], args[4], 0));
  }
  if (pauses) end_pause(result);
  return (int)result;
}

// Makes syscall(nr, ...) for seccomp and prctl.
WEFT_HIDDEN __attribute__((used)) long weft_syscall_filter(long nr, long a, long b, long c, long d,
                                                           long e) {
  const long args[5] = {a, b, c, d, e};
  long result;
  if (weft_seccomp_installs(nr, args, &result)) return weft_libc_result(result);
  const bool pauses = pause_clock(nr, args);
  result = weft_libc_result(weft_syscall6(nr, a, b, c, d, e, 0));
  if (pauses) end_pause(result);
  return result;
}

WEFT_EXPORT int unshare(int flags) {
  if (weft_process_ready()) weft_clock_before_unshare((unsigned)flags);
  if (weft_next.unshare != NULL) return weft_next.unshare(flags);
  return (int)weft_libc_result(weft_syscall6(__NR_unshare, flags, 0, 0, 0, 0, 0));
}

WEFT_EXPORT int setns(int fd, int type) {
  return (int)weft_libc_result(weft_process_ready()
                                   ? weft_clock_setns(fd, type)
                                   : weft_syscall6(__NR_setns, fd, type, 0, 0, 0, 0));
}

// Makes syscall(nr, ...) for unshare and setns.
WEFT_HIDDEN __attribute__((used)) long weft_syscall_namespace(long nr, long a, long b) {
  return (int)nr == __NR_setns ? setns((int)a, (int)b) : unshare((int)a);
}

// Returns the flags that clone3 is asked for. If they cannot be read, it assumes that memory is
// shared.
static uint64_t clone3_flags(uint64_t args, uint64_t size) {
  uint64_t flags = WEFT_CLONE_VM;
  if (size < WEFT_CLONE3_SMALLEST) return 0;  // the kernel refuses it
  if (!weft_seccomp_may_peek()) return flags;
  return weft_seccomp_peek(&flags, args, sizeof(flags)) == WEFT_PEEK_FAULT ? 0 : flags;
}

// Makes syscall(nr, ...) for rseq.
WEFT_HIDDEN __attribute__((used)) long weft_syscall_rseq(long nr, long area, long size, long flags,
                                                         long signature) {
  (void)nr;
  return weft_libc_result(weft_own_rseq_call(area, size, flags, signature));
}

// syscall(nr, flags, ...) for clone, clone3 and vfork. The child comes back from the same call,
// perhaps on the same stack, so nothing can be done after it: the mark stays.
WEFT_HIDDEN __attribute__((used)) void weft_syscall_clone(long nr, long first, long second) {
  uint64_t flags = WEFT_CLONE_VM;
  if (!weft_process_ready()) return;
  if ((int)nr == __NR_clone) flags = (uint64_t)first;
  if ((int)nr == __NR_clone3) flags = clone3_flags((uint64_t)first, (uint64_t)second);
  if ((flags & WEFT_CLONE_VM) != 0) weft_before_shared_child();
}

WEFT_EXPORT const char* __asan_default_options(void);
WEFT_EXPORT const char* __asan_default_options(void) { return "verify_asan_link_order=0"; }
