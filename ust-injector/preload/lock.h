// SPDX-License-Identifier: Apache-2.0
// The one lock of the slow path, weft_anchor->lock. All signals are blocked while a thread holds
// it, so that a handler never waits for the thread that it interrupted. It is free in a fork child.
//
// Invariant: everything that the lock guards is complete at every store. The lock of a dead owner
// (a killed CLONE_VM child) can therefore be taken over at any moment.
//
// If no system call may be made (seccomp.h), signals are not blocked: a handler that interrupted
// the owner does not get the lock.
#ifndef WEFT_UST_INJECTOR_PRELOAD_LOCK_H_
#define WEFT_UST_INJECTOR_PRELOAD_LOCK_H_

#include <stdbool.h>
#include <stdint.h>

// Takes the lock. Returns false if it did not become free in bounded time. *saved_mask is for
// weft_unlock. May run in any thread and in signal handlers.
bool weft_lock(uint64_t* saved_mask);
void weft_unlock(uint64_t saved_mask);

// Was the thread with this id killed? Dead means that it is gone, or is a zombie child of this
// process. May run in any thread.
bool weft_is_dead(uint32_t tid);

#endif  // WEFT_UST_INJECTOR_PRELOAD_LOCK_H_
