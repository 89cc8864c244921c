// SPDX-License-Identifier: Apache-2.0
// See own_control.h.
#include "ust-injector/preload/own_control.h"

#include <linux/memfd.h>
#include <linux/mman.h>

#include "lib/abi/control.h"
#include "ust-injector/preload/sys.h"
#include "ust-injector/preload/text.h"

#ifndef MFD_NOEXEC_SEAL
#define MFD_NOEXEC_SEAL 8u
#endif
#define WEFT_ADD_SEALS 1033
#define WEFT_SEALS 7 /* SEAL, SHRINK, GROW */

// The agent may only believe a size that cannot change, so what cannot be sealed is given up.
static long map_memfd(void) {
  // ftruncate over RLIMIT_FSIZE would raise SIGXFSZ.
  uint64_t limit[2] = {0, 0};
  if (weft_syscall(__NR_prlimit64, 0, 1 /* RLIMIT_FSIZE */, 0, limit) != 0 ||
      limit[0] < WEFT_CONTROL_TOTAL_BYTES) {
    return -1;
  }
  const unsigned flags = MFD_CLOEXEC | MFD_ALLOW_SEALING;
  long fd = weft_syscall(__NR_memfd_create, WEFT_CONTROL_MEMFD_NAME, flags | MFD_NOEXEC_SEAL);
  if (fd < 0) fd = weft_syscall(__NR_memfd_create, WEFT_CONTROL_MEMFD_NAME, flags);
  if (fd < 0) return -1;
  long map = -1;
  if (weft_syscall(__NR_ftruncate, fd, WEFT_CONTROL_TOTAL_BYTES) == 0 &&
      weft_syscall(__NR_fcntl, fd, WEFT_ADD_SEALS, WEFT_SEALS) == 0) {
    map =
        weft_syscall(__NR_mmap, 0, WEFT_CONTROL_TOTAL_BYTES, 3, MAP_SHARED | MAP_NORESERVE, fd, 0);
  }
  weft_syscall(__NR_close, fd);
  if (!weft_failed(map)) {
    weft_syscall(__NR_madvise, map, WEFT_CONTROL_TOTAL_BYTES, MADV_DONTDUMP);
  }
  return map;
}

static void lay_out(struct weft_control_header* h) {
  h->magic = WEFT_CONTROL_MAGIC;
  h->major = WEFT_CONTROL_MAJOR;
  h->minor = WEFT_CONTROL_MINOR;
  h->header_size = sizeof(*h);
  h->total_size = WEFT_CONTROL_TOTAL_BYTES;
  h->words_offset = WEFT_CONTROL_WORDS_OFFSET;
  h->arena_offset = WEFT_CONTROL_ARENA_OFFSET;
  h->arena_size = WEFT_CONTROL_ARENA_BYTES;
  h->word_count = WEFT_CONTROL_WORDS;
}

const uint8_t* weft_own_control_make(bool as_ld_so) {
  long map = as_ld_so ? -1 : map_memfd();
  if (weft_failed(map)) {
    map = weft_syscall(__NR_mmap, 0, WEFT_CONTROL_TOTAL_BYTES, 3,
                       MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  }
  if (weft_failed(map)) return NULL;
  lay_out((struct weft_control_header*)map);
  if (weft_syscall(__NR_mprotect, map, WEFT_CONTROL_TOTAL_BYTES, 1 /* PROT_READ */) != 0) {
    weft_syscall(__NR_munmap, map, WEFT_CONTROL_TOTAL_BYTES);
    return NULL;
  }
  return (const uint8_t*)map;
}
