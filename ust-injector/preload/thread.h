// SPDX-License-Identifier: Apache-2.0
// Identifies the calling thread without a system call at each event, and without TLS (which a
// library that both glibc and musl can load and dlopen cannot have).
//
// The thread id: libc keeps it in the thread's control block, at an offset that the library
// searches (x86-64). It checks the offset once per process, and on each thread's first use by
// asking the kernel. The name: cached in a WIPEONFORK table by thread id, and read again after 10
// ms. The name of a renamed thread, or of a new one with an old id, is therefore soon right.
#ifndef WEFT_UST_INJECTOR_PRELOAD_THREAD_H_
#define WEFT_UST_INJECTOR_PRELOAD_THREAD_H_

#include "lib/abi/context.h"
#include "ust-injector/preload/process.h"

struct weft_thread {
  uint32_t tid;  // 0: free. Stored last
  uint32_t reserved;
  uint64_t since;  // weft_clock_coarse when `procname` was asked for
  char procname[WEFT_CONTEXT_PROCNAME_SIZE];
};

// Returns NULL if there is no memory for the table.
const struct weft_thread* weft_thread_self(void);

// Returns the thread id in the process's own namespace (gettid).
uint32_t weft_thread_id(void);

#if defined(__x86_64__)
// Returns the same if it takes no system call, else 0.
static inline uint32_t weft_thread_id_known(void) {
  const uintptr_t tp = weft_thread_pointer();
  const int32_t offset = weft_anchor->tid_offset;
  // Once two threads agree, the offset is right for all; the first thread is right by itself.
  const bool known = offset != 0 && !weft_ids_are_shared() &&
                     (weft_anchor->tid_confirmed || weft_anchor->tid_found_at == tp || weft_silent);
  return __builtin_expect(known, 1) ? *(const volatile uint32_t*)(tp + (uintptr_t)(intptr_t)offset)
                                    : 0;
}
#endif

// Returns the CPU that the thread runs on.
static inline uint32_t weft_cpu(void) {
#if defined(__x86_64__)
  if (__builtin_expect(weft_process.on_valgrind, 0)) {
    uint32_t asked = 0;
    weft_syscall(__NR_getcpu, &asked);
    return asked;
  }
  // The kernel keeps the CPU number in the limit of a GDT segment, as its vDSO's getcpu reads it.
  uint32_t limit = 0;
  __asm__ volatile("lsl %1, %0" : "+r"(limit) : "r"(0x7b) : "cc");
  return limit & 0xfff;
#else
  uint32_t cpu = 0;
  weft_syscall(__NR_getcpu, &cpu);
  return cpu;
#endif
}

#endif  // WEFT_UST_INJECTOR_PRELOAD_THREAD_H_
