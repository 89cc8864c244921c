// SPDX-License-Identifier: Apache-2.0
// Seccomp filters: which system calls of ours the program may make. A filter that denies one (an
// errno) is harmless: what needed it is not there. A filter that kills must never see one. A filter
// cannot be asked for, so there are two cases:
//
//   it was there at exec    one word in /proc/self/status says so at start-up, read with calls that
//                           ld.so has just made itself. Before the first call that ld.so does not
//                           make, a child that shares the memory makes all of them: if it dies,
//                           weft is silent for good.
//   it is installed later   by prctl or syscall(SYS_seccomp), which libweft.so provides: it runs
//                           the filter on every call of its own. If one would kill, everything that
//                           tracing needs is made first; then weft makes no call any more, and
//                           events go on into the ring sets that are there.
//
// weft_silent (sys.h) is the switch: no weft_syscall reaches the kernel while it is set. It is
// inherited by fork, as filters are.
#ifndef WEFT_UST_INJECTOR_PRELOAD_SECCOMP_H_
#define WEFT_UST_INJECTOR_PRELOAD_SECCOMP_H_

#include <stdbool.h>

#include "ust-injector/preload/peek.h"
#include "ust-injector/preload/process.h"

// Calls that only some contexts, the statedump and a wait for the atomic slot need: where a filter
// kills for one of them, only that one is not made any more, and the rest goes on.
enum weft_call {
  WEFT_CALL_OPENAT,
  WEFT_CALL_READ,
  WEFT_CALL_PROCESS_VM_READV,
  WEFT_CALL_READLINKAT,
  WEFT_CALL_GETRESUID,
  WEFT_CALL_GETRESGID,
  WEFT_CALL_GETRUSAGE,
  WEFT_CALL_CLOCK_GETTIME,
  WEFT_CALL_PERF_EVENT_OPEN,
  WEFT_CALL_NANOSLEEP,
  WEFT_CALLS,
};

#define weft_may(call) (__builtin_expect((weft_process.call_kills >> (call) & 1) == 0, 1))
#define weft_optional(call, n, ...) (weft_may(call) ? weft_syscall(n, __VA_ARGS__) : -1L)

// At start-up: is there a filter already?
bool weft_seccomp_is_filtered(void);

// The trial by a child. True: every call of ours is survived. Under weft_lock. The child ends with
// signal 0, so that only a wait for all kinds of children (__WALL, __WCLONE) sees it. Its outcome
// is in memory: it does not matter which thread reaps it.
bool weft_seccomp_try(void);

// An object with tracepoints came. Makes the trial while the program has one thread, if an event is
// on: later on a thread that waits for all kinds of children could be given one that the program
// does not know.
void weft_seccomp_try_early(void);

// May memory of the program's be looked at (peek.h)? False: before a trial, in a silent process,
// and in one that is not traced.
bool weft_seccomp_may_peek(void);

// A prctl or seccomp call of the program. True: it installs a filter, and was made; *result is what
// the kernel said.
bool weft_seccomp_installs(long nr, const long args[5], long* result);

// weft_peek, with what filters let pass.
static inline enum weft_peek weft_seccomp_peek(void* to, uint64_t from, size_t size) {
  return weft_peek(to, from, size, weft_may(WEFT_CALL_PROCESS_VM_READV));
}

#endif  // WEFT_UST_INJECTOR_PRELOAD_SECCOMP_H_
