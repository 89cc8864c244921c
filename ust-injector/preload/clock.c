// SPDX-License-Identifier: Apache-2.0
// See clock.h. The vDSO is an ELF shared object; its dynamic section leads to symbols and strings
// as for any other. A name in it is unique: versions are not looked at.
#include "ust-injector/preload/clock.h"

#include <elf.h>

#include "ust-injector/preload/cycles.h"
#include "ust-injector/preload/environment.h"
#include "ust-injector/preload/helper_task.h"
#include "ust-injector/preload/lock.h"
#include "ust-injector/preload/process.h"
#include "ust-injector/preload/time_namespace.h"

#define WEFT_CLONE_NEWTIME 0x00000080u
#define WEFT_CLOCK_MONOTONIC_ID 1
#define WEFT_CLOCK_COARSE_ID 6 /* CLOCK_MONOTONIC_COARSE */

#if defined(__x86_64__)
static const char function_name[] = "__vdso_clock_gettime";
#else
static const char function_name[] = "__kernel_clock_gettime";
#endif

static int (*vdso_clock_gettime)(int clock, int64_t time[2]);

struct image {
  uintptr_t base;  // what its addresses are relative to
  const Elf64_Sym* symbols;
  const char* strings;
  const uint32_t* hash;      // DT_HASH
  const uint32_t* gnu_hash;  // DT_GNU_HASH; newer kernels have only this one
};

static const Elf64_Dyn* find_dynamic(uintptr_t start, uintptr_t* base) {
  const Elf64_Ehdr* header = (const Elf64_Ehdr*)start;
  const Elf64_Phdr* p = (const Elf64_Phdr*)(start + header->e_phoff);
  const Elf64_Dyn* dynamic = NULL;
  for (uint32_t i = 0; i < header->e_phnum; ++i) {
    if (p[i].p_type == PT_LOAD && p[i].p_offset == 0) *base = start - p[i].p_vaddr;
    if (p[i].p_type == PT_DYNAMIC) dynamic = (const Elf64_Dyn*)(start + p[i].p_offset);
  }
  return dynamic;
}

static bool read_image(uintptr_t start, struct image* image) {
  image->base = start;
  const Elf64_Dyn* d = find_dynamic(start, &image->base);
  if (d == NULL) return false;
  for (; d->d_tag != DT_NULL; ++d) {
    const void* at = (const void*)(image->base + d->d_un.d_ptr);
    if (d->d_tag == DT_SYMTAB) image->symbols = at;
    if (d->d_tag == DT_STRTAB) image->strings = at;
    if (d->d_tag == DT_HASH) image->hash = at;
    if (d->d_tag == DT_GNU_HASH) image->gnu_hash = at;
  }
  return image->symbols != NULL && image->strings != NULL &&
         (image->hash != NULL || image->gnu_hash != NULL);
}

static uint32_t count_symbols(const struct image* image) {
  if (image->hash != NULL) return image->hash[1];
  // GNU hash: header of 4 words, bloom filter of 8-byte words, buckets, then chains from symbol
  // `first` on; the last entry of a chain is odd.
  const uint32_t buckets = image->gnu_hash[0], first = image->gnu_hash[1];
  const uint32_t* bucket = image->gnu_hash + 4 + 2 * image->gnu_hash[2];
  const uint32_t* chain = bucket + buckets;
  uint32_t last = 0;
  for (uint32_t i = 0; i < buckets; ++i) {
    if (bucket[i] > last) last = bucket[i];
  }
  if (last < first) return first;
  while ((chain[last - first] & 1) == 0) ++last;
  return last + 1;
}

void weft_clock_start(void) {
  const uintptr_t start = vdso_clock_gettime == NULL ? weft_auxiliary(AT_SYSINFO_EHDR) : 0;
  struct image image = {0};
  if (start == 0 || !read_image(start, &image)) return;
  const uint32_t count = count_symbols(&image);
  for (uint32_t i = 0; i < count; ++i) {
    const Elf64_Sym* s = &image.symbols[i];
    if (s->st_shndx != SHN_UNDEF && weft_equal(image.strings + s->st_name, function_name)) {
      vdso_clock_gettime = (int (*)(int, int64_t*))(image.base + s->st_value);
    }
  }
}

uint64_t weft_clock_monotonic(void) {
  int64_t t[2] = {0, 0};
  if (vdso_clock_gettime == NULL || vdso_clock_gettime(WEFT_CLOCK_MONOTONIC_ID, t) != 0) {
    weft_syscall(__NR_clock_gettime, WEFT_CLOCK_MONOTONIC_ID, t);
  }
  // relaxed: one number
  const int64_t ahead = __atomic_load_n(&weft_process.clock_offset, __ATOMIC_RELAXED);
  return (uint64_t)t[0] * 1000000000u + (uint64_t)t[1] - (uint64_t)ahead;
}

uint64_t weft_clock_of_rings(void) {
  return weft_process.clock == WEFT_CLOCK_TSC ? weft_cycles() : weft_clock_monotonic();
}

uint64_t weft_clock_coarse(void) {
  int64_t t[2] = {0, 0};
  if (vdso_clock_gettime == NULL || vdso_clock_gettime(WEFT_CLOCK_COARSE_ID, t) != 0) {
    return weft_cycles();
  }
  return (uint64_t)t[0] * 1000000000u + (uint64_t)t[1];
}

// --- Time namespaces -----------------------------------------------------------------------------

// Rings with the time stamp counter do not depend on time namespaces. 0: no agent came yet.
static bool is_concerned(void) { return weft_process.clock != WEFT_CLOCK_TSC; }

// If the offset cannot be learned, the parent's offset stays in use.
static void learn_from(long folder) {
  int64_t offset;
  if (weft_time_namespace_offset(folder, &offset)) {
    // relaxed: one number; a signal handler reads the old one or the new one
    __atomic_store_n(&weft_process.clock_offset, offset, __ATOMIC_RELAXED);
  }
  weft_anchor->knows_clock_offset = 1;
}

void weft_clock_learn_offset(void) {
  if (weft_anchor->knows_clock_offset || !is_concerned()) return;
  const long folder = weft_time_namespace_open();
  if (folder < 0) return;
  learn_from(folder);
  weft_syscall(__NR_close, folder);
}

static void learn_in_helper(void* unused) {
  (void)unused;
  weft_clock_learn_offset();
}

void weft_clock_before_unshare(unsigned flags) {
  uint64_t mask;
  if ((flags & WEFT_CLONE_NEWTIME) == 0 || !is_concerned() || weft_anchor->knows_clock_offset ||
      !weft_lock(&mask)) {
    return;
  }
  if (weft_process.filter != WEFT_FILTER_NONE || !weft_is_threaded() ||
      !weft_helper_thread_run(learn_in_helper, NULL)) {
    weft_clock_learn_offset();
  }
  weft_unlock(mask);
}

// Only a process with one thread may change its time namespace, so no other thread can meet the
// descriptor. The folder is opened before the call, since the call may bring another /proc with it.
long weft_clock_setns(int fd, int type) {
  uint64_t mask;
  const bool may_be_time = type == 0 || ((unsigned)type & WEFT_CLONE_NEWTIME) != 0;
  if (!may_be_time || !is_concerned() || weft_is_threaded() || !weft_lock(&mask)) {
    return weft_syscall6(__NR_setns, fd, type, 0, 0, 0, 0);
  }
  const long folder = weft_time_namespace_open();
  const long result = weft_syscall6(__NR_setns, fd, type, 0, 0, 0, 0);
  if (result == 0 && folder >= 0) learn_from(folder);
  if (folder >= 0) weft_syscall(__NR_close, folder);
  weft_unlock(mask);
  return result;
}
