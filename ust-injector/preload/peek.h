// SPDX-License-Identifier: Apache-2.0
// Reads memory whose address the program passes to a system call that libweft.so sees first
// (interpose.c, seccomp.c). The address may be any number. The kernel answers a bad one with
// EFAULT, so reading it here must not end the program either: the kernel copies the bytes, or is
// asked first whether they can be read.
//
// Any thread. Call it only if weft_seccomp_may_peek(): without that, the library must not make
// these calls.
#ifndef WEFT_UST_INJECTOR_PRELOAD_PEEK_H_
#define WEFT_UST_INJECTOR_PRELOAD_PEEK_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// A `how` that rt_sigprocmask refuses, so that the call does not change the mask.
#define WEFT_PEEK_NO_HOW (-1)

enum weft_peek {
  WEFT_PEEK_COPIED,
  WEFT_PEEK_FAULT,    // the kernel answers EFAULT to the program
  WEFT_PEEK_UNKNOWN,  // not found out: the caller takes the worst for granted
};

// Copies `size` bytes, at least 8, from the program's address. It uses process_vm_readv if it may.
// If that fails (a filter, an old kernel, memory that may be written only), rt_sigprocmask tells
// for each page whether it can be read, and the copy is made here. Only in this case could another
// thread that unmaps the memory at the same moment crash the program.
enum weft_peek weft_peek(void* to, uint64_t from, size_t size, bool may_readv);

#endif  // WEFT_UST_INJECTOR_PRELOAD_PEEK_H_
