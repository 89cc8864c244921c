// SPDX-License-Identifier: Apache-2.0
// Perf counters of the calling thread: the context perf:thread:NAME. The one context that asks the
// kernel at each event, or reads the processor's counters (a named exception of P1).
//
//   task-clock, cpu-clock                    clock_gettime(CLOCK_THREAD_CPUTIME_ID), nanoseconds
//   page-faults, major-faults, minor-faults,
//   context-switches                         getrusage(RUSAGE_THREAD)
//     what the kernel counts for every thread anyway, from its start: nothing is opened for it, so
//     it is there also where perf_event_open is not allowed (kernel.perf_event_paranoid,
//     containers)
//   counters of the processor                perf_event_open at a thread's first event, mapped, the
//     descriptor closed at once: the mapping keeps the counter alive. Read by rdpmc, no call; from
//     the first event on, user space only. 0 where that is not possible: no such counter, not
//     allowed, no rdpmc (virtual machines, arm64), too many threads or mappings.
//   the rest                                 0: it would need an open descriptor in the program
//
// A mapping goes when a new thread needs the place of a dead one, or with the process. fork does
// not copy it; a child has counters of its own.
#ifndef WEFT_UST_INJECTOR_PRELOAD_PERF_H_
#define WEFT_UST_INJECTOR_PRELOAD_PERF_H_

#include <stdint.h>

// Returns the number of a counter (as in perf_event_attr) for weft_perf_read. The caller holds
// weft_lock.
uint32_t weft_perf_number(uint32_t type, uint64_t config);

// May run in any thread and in signal handlers. Obeys the rules of seccomp.h.
uint64_t weft_perf_read(uint32_t number);

#endif  // WEFT_UST_INJECTOR_PRELOAD_PERF_H_
