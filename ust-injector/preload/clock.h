// SPDX-License-Identifier: Apache-2.0
// Reads CLOCK_MONOTONIC without a system call: by the vDSO's clock_gettime, found in the image
// that the kernel maps into every process (the auxiliary vector has its address). Any thread,
// signal handlers. It uses very little stack, no lock and no libc.
#ifndef WEFT_UST_INJECTOR_PRELOAD_CLOCK_H_
#define WEFT_UST_INJECTOR_PRELOAD_CLOCK_H_

#include <stdint.h>

// Before those below are used for the first time; may be called again. Under weft_lock or at
// start-up.
void weft_clock_start(void);

// Nanoseconds of the host's CLOCK_MONOTONIC, in whatever time namespace. Where there is no vDSO, by
// a system call.
uint64_t weft_clock_monotonic(void);

// The clock that this process's rings have (enum weft_clock_id).
uint64_t weft_clock_of_rings(void);

// With the clock `monotonic`: makes weft_process.clock_offset, which the above subtracts, this
// process's. It is learned at the start and when a ring set is made, once in a process, since a
// fork child may be in another namespace; before the program's unshare, if it was not yet; and
// after setns, which moves the process itself. It opens descriptors: where no other thread can meet
// them (helper_task.h). Under weft_lock or at start-up.
void weft_clock_learn_offset(void);

// The program is about to call unshare. The process is ready.
void weft_clock_before_unshare(unsigned flags);

// Makes the program's call of setns and learns anew. Returns the kernel's result. The process is
// ready.
long weft_clock_setns(int fd, int type);

// Nanoseconds of CLOCK_MONOTONIC_COARSE: a few ms behind, but read without the time stamp counter,
// which takes longer than all else at an event. Cycles where there is no vDSO. Needs
// weft_clock_start.
uint64_t weft_clock_coarse(void);

#endif  // WEFT_UST_INJECTOR_PRELOAD_CLOCK_H_
