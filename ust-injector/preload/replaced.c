// SPDX-License-Identifier: Apache-2.0
// See replaced.h.
#include "ust-injector/preload/replaced.h"

#if defined(__x86_64__)

#include <elf.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "ust-injector/preload/hooks.h"
#include "ust-injector/preload/interpose.h"

// --- unwinders -----------------------------------------------------------------------------------

// dlfcn.h of glibc 2.35 and later. `map` is the public part of a struct link_map.
struct found_object {
  unsigned long long flags;
  const void* map_start;
  const void* map_end;
  const struct object_map* map;
  const void* eh_frame;  // the segment PT_GNU_EH_FRAME
};

struct object_map {
  const void* address;
  const char* name;
  const void* dynamic;
  const struct object_map* next;
  const struct object_map* previous;
};

// struct dl_phdr_info of link.h.
struct object_headers {
  uint64_t address;
  const char* name;
  const Elf64_Phdr* headers;
  uint16_t count;
  unsigned long long loads;
  unsigned long long unloads;
  size_t tls_number;
  void* tls;
};

// The library itself, as the linker names it.
extern const Elf64_Ehdr __ehdr_start __attribute__((visibility("hidden")));
extern const Elf64_Dyn _DYNAMIC[] __attribute__((visibility("hidden")));

#define WEFT_NAME "libweft.so"

static const struct object_map own_map = {&__ehdr_start, WEFT_NAME, _DYNAMIC, NULL, NULL};

// The agent puts the originals here before anything leads to the functions below.
static int (*next_find_object)(void* pc, struct found_object* result);
typedef int headers_callback(struct object_headers* info, size_t size, void* data);
static int (*next_iterate)(headers_callback* callback, void* data);

static const Elf64_Phdr* own_headers(void) {
  return (const Elf64_Phdr*)((const uint8_t*)&__ehdr_start + __ehdr_start.e_phoff);
}

// Fills `result`. False: the address is not the library's.
static bool find_own(const void* pc, struct found_object* result) {
  const uint8_t* const begin = (const uint8_t*)&__ehdr_start;
  uint64_t end = 0;
  const void* eh_frame = NULL;
  for (uint16_t i = 0; i < __ehdr_start.e_phnum; ++i) {
    const Elf64_Phdr* h = &own_headers()[i];
    if (h->p_type == PT_LOAD) end = h->p_vaddr + h->p_memsz;
    if (h->p_type == PT_GNU_EH_FRAME) eh_frame = begin + h->p_vaddr;
  }
  if ((uintptr_t)pc - (uintptr_t)begin >= end) return false;
  result->flags = 0;
  result->map_start = begin;
  result->map_end = begin + end;
  result->map = &own_map;
  result->eh_frame = eh_frame;
  return true;
}

static int find_object(void* pc, struct found_object* result) {
  return find_own(pc, result) ? 0 : next_find_object(pc, result);
}

// Code with a callback of the program's under it, which may throw: an agent leaves the functions of
// unwinders alone as long as a thread is in it (lib/abi/hooks.h, A5).
#define IN_WALK __attribute__((section("weft_walk"), noinline))

struct iteration {
  headers_callback* callback;
  void* data;
  bool is_told;  // of the library
};

// The callback for the library comes within that for the first object, the program. So the C
// library's lock is held, on which callbacks rely for their own data (libgcc's cache), and the
// counts of loads are the program's, by which callbacks see that their data is old.
static IN_WALK int tell(struct object_headers* info, size_t size, void* data) {
  struct iteration* of = data;
  const int result = of->callback(info, size, of->data);
  if (result != 0 || of->is_told) return result;
  of->is_told = true;
  struct object_headers own = {.address = (uintptr_t)&__ehdr_start,
                               .name = WEFT_NAME,
                               .headers = own_headers(),
                               .count = __ehdr_start.e_phnum};
  if (size >= sizeof(own)) {
    own.loads = info->loads;
    own.unloads = info->unloads;
  }
  return of->callback(&own, size, of->data);
}

static IN_WALK int iterate(headers_callback* callback, void* data) {
  struct iteration of = {callback, data, false};
  return next_iterate(tell, &of);
}

// --- clone ---------------------------------------------------------------------------------------

#define WEFT_CLONE_THREAD 0x00010000
#define WEFT_CLONE_SETTLS 0x00080000

// Within a C library, the function also makes its threads (where the kernel has no clone3, or a
// filter denies it). These have their own thread pointer and sequences, as far as flags tell.
static int clone_in_place(int (*fn)(void*), void* stack, int flags, void* arg, void* ptid,
                          void* tls, void* ctid) {
  const int thread = WEFT_CLONE_THREAD | WEFT_CLONE_SETTLS;
  if ((flags & thread) == thread && weft_next.clone != NULL)
    return weft_next.clone(fn, stack, flags, arg, ptid, tls, ctid);
  return clone(fn, stack, flags, arg, ptid, tls, ctid);
}

// --- table ---------------------------------------------------------------------------------------

static const struct {
  const void* function;
  const void* original;
} replacements[WEFT_REPLACED_COUNT] = {
    [WEFT_REPLACED_DL_FIND_OBJECT] = {find_object, &next_find_object},
    [WEFT_REPLACED_DL_ITERATE_PHDR] = {iterate, &next_iterate},
    [WEFT_REPLACED_CLONE] = {clone_in_place, &weft_next.clone},
    [WEFT_REPLACED_PRCTL] = {prctl, &weft_next.prctl},
    [WEFT_REPLACED_SETNS] = {setns, NULL},
    [WEFT_REPLACED_SYSCALL] = {syscall, &weft_next.syscall},
    [WEFT_REPLACED_UNSHARE] = {unshare, &weft_next.unshare},
    [WEFT_REPLACED_VFORK] = {vfork, NULL},
    [WEFT_REPLACED_ERRNO_LOCATION] = {NULL, &weft_next.errno_location},
};

// The linker makes these names for a section of such a name.
extern const uint8_t __start_weft_walk[] __attribute__((visibility("hidden")));
extern const uint8_t __stop_weft_walk[] __attribute__((visibility("hidden")));

void weft_replaced_start(void) {
  weft_hooks.places.walk = (uintptr_t)__start_weft_walk;
  weft_hooks.places.walk_end = (uintptr_t)__stop_weft_walk;
  for (uint32_t i = 0; i < WEFT_REPLACED_COUNT; ++i) {
    weft_hooks.replacements[i].function = (uintptr_t)replacements[i].function;
    weft_hooks.replacements[i].original = (uintptr_t)replacements[i].original;
  }
}

#endif
