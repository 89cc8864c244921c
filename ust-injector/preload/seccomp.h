// SPDX-License-Identifier: Apache-2.0
// Decides which system calls libweft.so may make under seccomp filters. A filter that denies a call
// (an errno) is harmless: only what needed the call is missing. A call for which a filter kills
// must never be made. A process cannot ask the kernel for its filters, so there are two cases:
//
//   it was there at exec    one word in /proc/self/status says so at start-up, read with calls that
//                           ld.so has just made itself. Before the first call that ld.so does not
//                           make, there is a trial: a child that shares the memory makes all of
//                           them. If it dies, weft is silent for good.
//   it is installed later   seccomp_install.h.
//
// weft_silent (sys.h) is the switch: no weft_syscall reaches the kernel while it is set. It is
// inherited by fork, as filters are.
#ifndef WEFT_UST_INJECTOR_PRELOAD_SECCOMP_H_
#define WEFT_UST_INJECTOR_PRELOAD_SECCOMP_H_

#include <stdbool.h>

#include "ust-injector/preload/peek.h"
#include "ust-injector/preload/process.h"

// Calls that only some contexts, the state dump, the memory pool, names of ring sets, a wait for
// the atomic slot and hooks need: where a filter kills for one of them, only that one is not made
// any more, and the rest goes on.
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
  WEFT_CALL_OPEN_POOL,  // ring_memory.c
  WEFT_CALL_FIONREAD,
  WEFT_CALL_OPEN_NAMES,  // doorbell.c
  WEFT_CALL_WRITE,
  WEFT_CALL_PPOLL,  // hooks.c
  WEFT_CALLS,
};

#define weft_may(call) (__builtin_expect((weft_process.call_kills >> (call) & 1) == 0, 1))
#define weft_optional(call, n, ...) (weft_may(call) ? weft_syscall(n, __VA_ARGS__) : -1L)

// A system call with the arguments that filters look at.
struct weft_system_call {
  int nr;
  uint64_t args[6];
};

/* Such arguments use this for any descriptor and any address. */
#define WEFT_SOME_FD 1000
#define WEFT_SOME_ADDRESS 0x7f0000001000
/* The calls that open the memory pool and ask how many bytes are in it. */
#define WEFT_FIONREAD 0x541b
#define WEFT_POOL_FLAGS (O_RDONLY | O_NONBLOCK | O_CLOEXEC | O_NOCTTY)
/* Flags that open the FIFO of names. It is opened for reading, too, since a write to a FIFO that no
 * process reads raises SIGPIPE. */
#define WEFT_NAMES_FLAGS (O_RDWR | O_NONBLOCK | O_CLOEXEC | O_NOCTTY)
/* The type of the socket that calls the keeper. */
#define WEFT_SOCKET_TYPE (SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK)

// Indexed by enum weft_call. They are tried with these very arguments: NULL instead of memory, so
// that nothing is written.
extern const struct weft_system_call weft_optional_calls[WEFT_CALLS]
    __attribute__((visibility("hidden")));

// At start-up: is there a filter already?
bool weft_seccomp_is_filtered(void);

// Must be called before anything that calls the kernel for more than the lock. Under a filter that
// was there at exec, it makes the trial. Returns false if no call may be made; the process is then
// silent for good. It takes the lock itself. May run in any thread.
//
// The trial's child ends with signal 0, so that only a wait for all kinds of children (__WALL,
// __WCLONE) sees it. Its outcome is in memory: it does not matter which thread reaps it.
bool weft_seccomp_may_call(void);

// May this library look at the program's memory (peek.h)? False before a trial, in a silent
// process, and in one that is not traced.
bool weft_seccomp_may_peek(void);

// Calls weft_peek with the system calls that filters let pass.
static inline enum weft_peek weft_seccomp_peek(void* to, uint64_t from, size_t size) {
  return weft_peek(to, from, size, weft_may(WEFT_CALL_PROCESS_VM_READV));
}

#endif  // WEFT_UST_INJECTOR_PRELOAD_SECCOMP_H_
