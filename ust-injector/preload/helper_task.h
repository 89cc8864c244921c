// SPDX-License-Identifier: Apache-2.0
// Runs a function of ours in a helper that cannot disturb the program: on a stack of its own, while
// the calling thread waits. There are two kinds of helpers.
//
//   a thread with its own descriptor table   what it opens, closes and is given is in no other
//       thread's table: a program that closes all descriptors, or uses a number again, from another
//       thread meets none of ours, and a full table has room (a copy is closed). Same process:
//       sockets show the program's own pid. It ends before the caller goes on; it has no rseq and
//       traces nothing.
//   a child process that shares the memory   its death by a seccomp filter is survived (seccomp.c).
//       It ends with signal 0, so that no wait() of the program sees it.
//
// Callers hold weft_lock or are the only thread: there is one stack.
#ifndef WEFT_UST_INJECTOR_PRELOAD_HELPER_TASK_H_
#define WEFT_UST_INJECTOR_PRELOAD_HELPER_TASK_H_

#include <stdbool.h>

// Flags of the clones; seccomp_install.c asks a filter about them.
#define WEFT_HELPER_THREAD_FLAGS 0x00054b00L /* VM, FS, SIGHAND, THREAD, SYSVSEM, VFORK */
#define WEFT_HELPER_CHILD_FLAGS 0x00004000L  /* VFORK */
#define WEFT_HELPER_SHARE_MEMORY 0x00000100L /* VM */

// Returns false if no such thread could be made; then fn was not called.
bool weft_helper_thread_run(void (*fn)(void*), void* arg);

// For `fn` in a helper thread whose table is full of copies: closes two of them.
void weft_helper_close_copies(void);

// Returns the child's pid, to be waited for with __WALL, or a negative errno.
long weft_helper_child_run(void (*fn)(void*), void* arg, bool share_memory);

// Returns false if no other thread can use this process's descriptors now.
bool weft_is_threaded(void);

#endif  // WEFT_UST_INJECTOR_PRELOAD_HELPER_TASK_H_
