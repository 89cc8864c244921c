// SPDX-License-Identifier: Apache-2.0
// See memory.h.
#include "ust-injector/preload/memory.h"

#include <linux/mman.h>

#include "ust-injector/preload/sys.h"

#define WEFT_ARENA_BYTES (256u * 1024u)

// A fork may find any state between two stores: `end` NULL means "nothing left".
static uint8_t* volatile next, * volatile end;

void weft_reserve_memory(void) {
  end = NULL;
  (void)weft_allocate(16);
}

void* weft_allocate(uint64_t size) {
  size = (size + 15) & ~15ull;
  if (end == NULL || size > (uint64_t)(end - next)) {
    const uint64_t bytes = size > WEFT_ARENA_BYTES ? (size + 4095) & ~4095ull : WEFT_ARENA_BYTES;
    const long map =
        weft_syscall(__NR_mmap, 0, bytes, 3, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (weft_failed(map)) return NULL;
    if (size > WEFT_ARENA_BYTES / 2) return (void*)map;
    end = NULL;
    next = (uint8_t*)map;
    end = (uint8_t*)map + bytes;
  }
  void* out = next;
  next += size;
  return out;
}

bool weft_wipe_on_fork(void* pages, uint64_t size) {
  return weft_syscall(__NR_madvise, pages, size, MADV_WIPEONFORK) == 0;
}

void* weft_allocate_wiped_on_fork(uint64_t size) {
  const long map =
      weft_syscall(__NR_mmap, 0, size, 3, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (weft_failed(map)) return NULL;
  if (weft_wipe_on_fork((void*)map, size)) return (void*)map;
  weft_syscall(__NR_munmap, map, size);
  return NULL;
}
