// SPDX-License-Identifier: Apache-2.0
// Reads the processor's time stamp counter, which measures durations without a system call. It is
// also the clock of rings with WEFT_CLOCK_TSC. Any thread, signal handlers. If the program forbade
// reading it (weft_process.no_clock), the read raises SIGSEGV.
#ifndef WEFT_UST_INJECTOR_PRELOAD_CYCLES_H_
#define WEFT_UST_INJECTOR_PRELOAD_CYCLES_H_

#include <stdint.h>

/* In weft_cycles. */
#define WEFT_ABOUT_A_SECOND (1ull << 31)
#define WEFT_ABOUT_A_TENTH (1ull << 28)

static inline uint64_t weft_cycles(void) {
#if defined(__x86_64__)
  uint32_t low, high;
  __asm__ volatile("rdtsc" : "=a"(low), "=d"(high));
  return (uint64_t)high << 32 | low;
#else
  uint64_t t;
  __asm__ volatile("isb; mrs %0, cntvct_el0" : "=r"(t));
  return t;
#endif
}

#endif  // WEFT_UST_INJECTOR_PRELOAD_CYCLES_H_
