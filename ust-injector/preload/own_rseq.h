// SPDX-License-Identifier: Apache-2.0
// Restartable sequences where libc registers none (musl, glibc before 2.35, or told not to): a
// thread registers an area of ours with the kernel at its first event that gets this far.
//
// The areas lie in one pool that is never unmapped: a thread of musl unmaps its own stack, and the
// kernel writes into the area until the very end. A thread's area is the one at the hash of its
// thread pointer, so that a fork child, whose kernel side is still registered there, finds it
// again; the pool itself is wiped on fork. Two threads with one hash: the second uses the atomic
// slot.
//
// A program that registers an area of its own, by syscall(SYS_rseq), gets what it asks for, also
// where weft was first: weft's registration ends before that call. Such a thread uses the atomic
// slot until the program takes its area back. The program's area is never used: its memory may be
// gone at any moment.
//
// Invariant: an area is used only by the thread whose thread pointer and id both stand in its
// entry. A thread that died left the kernel's side unregistered and its area looking alive; a new
// one with the same thread pointer has another id, which libc keeps in its control block
// (thread.h).
#ifndef WEFT_UST_INJECTOR_PRELOAD_OWN_RSEQ_H_
#define WEFT_UST_INJECTOR_PRELOAD_OWN_RSEQ_H_

#include "ust-injector/preload/process.h"

// Returns the calling thread's area; NULL: the thread uses the atomic slot. May run in any thread
// and in signal handlers.
void* weft_own_rseq(void);

// Makes the program's own call of rseq(area, size, flags, signature). Returns what the kernel
// returns.
long weft_own_rseq_call(long area, long size, long flags, long signature);

#endif  // WEFT_UST_INJECTOR_PRELOAD_OWN_RSEQ_H_
