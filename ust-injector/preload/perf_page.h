// SPDX-License-Identifier: Apache-2.0
// Reads a counter of the processor from its mapped page, as linux/perf_event.h describes at
// perf_event_mmap_page.lock. x86-64. Called by the counting thread itself, or its signal handlers.
#ifndef WEFT_UST_INJECTOR_PRELOAD_PERF_PAGE_H_
#define WEFT_UST_INJECTOR_PRELOAD_PERF_PAGE_H_

#include <linux/perf_event.h>
#include <stdint.h>

// Counters of the processor have `width` bits and may be negative: the kernel starts them below 0.
static inline uint64_t weft_perf_extend(uint64_t bits, uint32_t width) {
  const uint32_t unused = 64u - width;
  return (uint64_t)((int64_t)(bits << unused) >> unused);
}

static inline uint64_t weft_perf_read_page(const struct perf_event_mmap_page* page) {
  const volatile struct perf_event_mmap_page* p = page;
  uint32_t sequence;
  uint64_t count;
  // The kernel writes the page on the CPU of this very thread: the compiler's order is enough.
  do {
    sequence = p->lock;
    __asm__ volatile("" ::: "memory");
    const uint32_t index = p->index;
    count = (uint64_t)p->offset;
    if (p->cap_user_rdpmc && index != 0) {
      uint32_t low, high;
      __asm__ volatile("rdpmc" : "=a"(low), "=d"(high) : "c"(index - 1));
      count += weft_perf_extend((uint64_t)high << 32 | low, p->pmc_width);
    }
    __asm__ volatile("" ::: "memory");
  } while (p->lock != sequence);
  return count;
}

#endif  // WEFT_UST_INJECTOR_PRELOAD_PERF_PAGE_H_
