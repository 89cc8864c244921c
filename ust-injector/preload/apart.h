// SPDX-License-Identifier: Apache-2.0
// Running a function of ours where it cannot disturb the program: on a stack of its own, for as
// long as the calling thread waits, in one of two ways.
//
//   a thread with its own descriptor table   what it opens, closes and is given is in nobody else's
//       table: a program that closes all descriptors, or uses a number again, from another thread
//       meets none of ours, and a full table has room (a copy is closed). Same process: sockets
//       show the program's own pid. It ends before the caller goes on; it has no rseq and traces
//       nothing.
//   a child process that shares the memory   its death by a seccomp filter is survived (seccomp.c).
//       It ends with signal 0, so that no wait() of the program sees it.
//
// Callers hold weft_lock or are the only thread: there is one stack.
#ifndef WEFT_UST_INJECTOR_PRELOAD_APART_H_
#define WEFT_UST_INJECTOR_PRELOAD_APART_H_

#include <stdbool.h>

// What the clones ask for; seccomp.c asks a filter about them.
#define WEFT_APART_THREAD_FLAGS 0x00054b00L /* VM, FS, SIGHAND, THREAD, SYSVSEM, VFORK */
#define WEFT_APART_CHILD_FLAGS 0x00004000L  /* VFORK */
#define WEFT_APART_SHARE_MEMORY 0x00000100L /* VM */

// False: no such thread could be made, fn was not called.
bool weft_run_in_thread(void (*fn)(void*), void* arg);

// The child's pid, to be waited for with __WALL, or a negative errno.
long weft_run_in_child(void (*fn)(void*), void* arg, bool share_memory);

// False where no other thread can use this process's descriptors now.
bool weft_is_threaded(void);

#endif  // WEFT_UST_INJECTOR_PRELOAD_APART_H_
