// SPDX-License-Identifier: Apache-2.0
// Seccomp filters: which system calls of ours the program may make. A filter that denies one (an errno) is
// harmless: what needed it is not there. A filter that kills must never see one. A filter cannot be
// asked for, so there are two cases:
//
//   it was there at exec    one word in /proc/self/status says so at start-up, read with calls that ld.so
//                           has just made itself. Before the first call that ld.so does not make, a child
//                           that shares the memory makes all of them: if it dies, weft is silent for good.
//   it is installed later   by prctl or syscall(SYS_seccomp), which libweft.so provides: it runs the
//                           filter on every call of its own. If one would kill, everything that
//                           tracing needs is made first; then weft makes no call any more, and events go
//                           on into the ring sets that are there.
//
// weft_silent (sys.h) is the switch: no weft_syscall reaches the kernel while it is set. It is inherited
// by fork, as filters are.
#ifndef WEFT_UST_INJECTOR_PRELOAD_SECCOMP_H_
#define WEFT_UST_INJECTOR_PRELOAD_SECCOMP_H_

#include <stdbool.h>

// At start-up: is there a filter already?
bool weft_seccomp_is_filtered(void);

// The trial by a child. True: every call of ours is survived. Under weft_lock.
bool weft_seccomp_try(void);

// A prctl or seccomp call of the program. True: it installs a filter, and was made; *result is what the
// kernel said.
bool weft_seccomp_installs(long nr, const long args[5], long* result);

#endif  // WEFT_UST_INJECTOR_PRELOAD_SECCOMP_H_
