// SPDX-License-Identifier: Apache-2.0
// Reads CLOCK_MONOTONIC without a system call: by the vDSO's clock_gettime, found in the image
// that the kernel maps into every process (the auxiliary vector has its address). Any thread,
// signal handlers. It uses very little stack, no lock and no libc.
#ifndef WEFT_UST_INJECTOR_PRELOAD_CLOCK_H_
#define WEFT_UST_INJECTOR_PRELOAD_CLOCK_H_

#include <stdint.h>

// Must be called before the functions below are used for the first time; may be called again. The
// caller holds weft_lock, or this is start-up.
void weft_clock_start(void);

// Returns nanoseconds of the host's CLOCK_MONOTONIC, in whatever time namespace this process is.
// Without a vDSO it makes a system call.
uint64_t weft_clock_monotonic(void);

// Returns the clock that this process's rings use (enum weft_clock_id).
uint64_t weft_clock_of_rings(void);

// With the clock `monotonic`: sets weft_process.clock_offset, which weft_clock_monotonic subtracts,
// to this process's offset. The process learns it at the start and when it makes a ring set, once,
// since a fork child may be in another namespace. It learns it before the program's unshare, if it
// has not yet, and after setns, which moves the process itself. It opens descriptors in a place
// where no other thread can meet them (helper_task.h). The caller holds weft_lock, or this is
// start-up.
void weft_clock_learn_offset(void);

// Called when the program is about to call unshare. The process is ready.
void weft_clock_before_unshare(unsigned flags);

// Makes the program's call of setns and learns anew. Returns the kernel's result. The process is
// ready.
long weft_clock_setns(int fd, int type);

// Returns nanoseconds of CLOCK_MONOTONIC_COARSE. They are a few ms behind, but are read without the
// time stamp counter, whose read takes longer than all else at an event. Without a vDSO it returns
// cycles. Needs weft_clock_start.
uint64_t weft_clock_coarse(void);

#endif  // WEFT_UST_INJECTOR_PRELOAD_CLOCK_H_
