// SPDX-License-Identifier: Apache-2.0
// Children that share this process's memory: vfork, and clone with CLONE_VM that is no thread of
// libc's. Such a child has no rseq of its own (the kernel drops the registration), but runs on a
// thread pointer whose rseq area looks alive: in a section it would be a second writer. So, while
// there may be one, all threads use the atomic slots.
//
//   vfork, clone(CLONE_VM | CLONE_VFORK)   until the parent goes on: the child has left the memory
//                                          then
//   clone(CLONE_VM)                        from then on, also in children, until exec
//
// posix_spawn, system and popen make such a child inside libc; it runs only libc's code, with all
// signals blocked, until it executes: nothing in it traces. A program that makes one by a system
// call of its own in assembly is not seen.
//
// May run in any thread and in signal handlers. Makes no system calls.
#ifndef WEFT_UST_INJECTOR_PRELOAD_CHILDREN_H_
#define WEFT_UST_INJECTOR_PRELOAD_CHILDREN_H_

#include "ust-injector/preload/process.h"

// Before vfork. The result is for weft_after_vfork: channels whose lock the caller itself holds (it
// is a signal handler that interrupted its thread in the atomic slot).
uint64_t weft_before_vfork(void);

// The parent calls it with the result of the system call. Releases what a killed child left locked.
void weft_after_vfork(long pid, uint64_t locked_before);

// The caller calls it before a clone(CLONE_VM) whose child runs beside it.
void weft_before_shared_child(void);

// `count` slots of a new ring set may be used in sections, from when these are safe; 0: none any
// more.
void weft_children_allow_slots(struct weft_anchor_channel* channel, uint32_t count);

#endif  // WEFT_UST_INJECTOR_PRELOAD_CHILDREN_H_
