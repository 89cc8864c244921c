// SPDX-License-Identifier: Apache-2.0
// See hooks.h.
#include "ust-injector/preload/hooks.h"

#if defined(__x86_64__)

#include <elf.h>
#include <errno.h>
#include <linux/mman.h>
#include <linux/un.h>
#include <poll.h>
#include <sys/socket.h>

#include "lib/abi/control.h"
#include "ust-injector/preload/environment.h"
#include "ust-injector/preload/hook_calls.h"
#include "ust-injector/preload/hook_slow.h"
#include "ust-injector/preload/hooks_asm.h"
#include "ust-injector/preload/hooks_go.h"
#include "ust-injector/preload/process.h"
#include "ust-injector/preload/rules.h"
#include "ust-injector/preload/seccomp.h"

// The program's area lies below the program, because its heap grows above it. It is tried at
// distances that double; thunks reach 2 GiB.
#define WEFT_AREA_GAP (1ull << 20)
#define WEFT_AREA_FARTHEST (1ull << 30)
#define WEFT_GO_NOTE "Go\0"        /* name of its notes, 4 bytes */
#define WEFT_LOWEST_ADDRESS 65536u /* vm.mmap_min_addr */

struct weft_hooks weft_hooks;

static uint64_t bytes_of(const struct weft_hook_area* area) {
  return area->code_bytes + area->data_bytes;
}

// `size`: an area without addresses.
static void set_area(uint32_t number, struct weft_hook_area size, long map) {
  size.code = (uint64_t)map;
  size.data = size.code + size.code_bytes;
  if (weft_syscall(__NR_mprotect, size.data, size.data_bytes, 3 /* read, write */) != 0) {
    weft_syscall(__NR_munmap, map, bytes_of(&size));
    return;
  }
  weft_hooks.areas[number] = size;
}

static long map_area(uint64_t where, uint64_t bytes) {
  const int fixed = where != 0 ? MAP_FIXED_NOREPLACE : 0;
  const long map = weft_syscall(__NR_mmap, where, bytes, 5 /* read, execute */,
                                MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | fixed, -1, 0);
  if (weft_failed(map) || where == 0 || (uint64_t)map == where) return map;
  weft_syscall(__NR_munmap, map, bytes);  // Linux before 4.17 takes it for a hint
  return -1;
}

// Returns where the program's first segment lies; 0: not known.
static uint64_t program_begin(void) {
  const Elf64_Phdr* headers = (const Elf64_Phdr*)weft_auxiliary(AT_PHDR);
  const unsigned long count = weft_auxiliary(AT_PHNUM);
  uint64_t lowest = ~0ull;
  if (headers == NULL || weft_auxiliary(AT_PHENT) != sizeof(Elf64_Phdr)) return 0;
  for (unsigned long i = 0; i < count; ++i) {
    if (headers[i].p_type == PT_LOAD && headers[i].p_vaddr < lowest) lowest = headers[i].p_vaddr;
  }
  return lowest == ~0ull ? 0 : (weft_program_bias(headers, count) + lowest) & ~4095ull;
}

// Makes the program's area. False: there is no room for one of this size.
static bool make_low_area(struct weft_hook_area size) {
  const uint64_t bytes = bytes_of(&size);
  const uint64_t program = program_begin();
  for (uint64_t gap = WEFT_AREA_GAP; gap <= WEFT_AREA_FARTHEST && program != 0; gap *= 2) {
    // A program that is not position-independent begins at 4 MiB: there is no room for the gap.
    const uint64_t wanted =
        program > bytes + gap + WEFT_LOWEST_ADDRESS ? program - bytes - gap : WEFT_LOWEST_ADDRESS;
    if (wanted + bytes > program) return false;
    const long map = map_area(wanted, bytes);
    if (weft_failed(map)) continue;
    set_area(0, size, map);
    return true;
  }
  return false;
}

static void make_areas(bool are_spare) {
  const struct weft_hook_area spare = {.code_bytes = WEFT_HOOK_SPARE_CODE_BYTES,
                                       .data_bytes = WEFT_HOOK_SPARE_DATA_BYTES};
  const struct weft_hook_area full = {.code_bytes = WEFT_HOOK_CODE_BYTES,
                                      .data_bytes = WEFT_HOOK_DATA_BYTES};
  const struct weft_hook_area low = {.code_bytes = WEFT_HOOK_LOW_CODE_BYTES,
                                     .data_bytes = WEFT_HOOK_LOW_DATA_BYTES};
  const struct weft_hook_area size = are_spare ? spare : full;
  if (!make_low_area(size) && !are_spare) make_low_area(low);
  const long map = map_area(0, bytes_of(&size));
  if (!weft_failed(map)) set_area(1, size, map);
}

// Waits until the agent closes the connection. Signals may come: the kernel leaves in `left` how
// much of the time remains.
static void wait_for_agent(long s) {
  struct pollfd p = {.fd = (int)s, .events = POLLIN};
  int64_t left[2] = {WEFT_HOOKS_PATIENCE_MS / 1000, WEFT_HOOKS_PATIENCE_MS % 1000 * 1000000};
  while (weft_optional(WEFT_CALL_PPOLL, __NR_ppoll, &p, 1, left, 0, 0) == -EINTR) {
  }
}

static void call_agent(void) {
  struct sockaddr_un to = {.sun_family = AF_UNIX};
  char* at = to.sun_path;
  char* end = at + sizeof(to.sun_path);
  if (!weft_append(&at, end, weft_process.folder) || !weft_append(&at, end, "/" WEFT_HOOKS_SOCKET))
    return;
  const long s = weft_syscall(__NR_socket, AF_UNIX, WEFT_SOCKET_TYPE, 0);
  if (s < 0) return;
  if (weft_syscall(__NR_connect, s, &to, sizeof(to)) == 0) wait_for_agent(s);
  weft_syscall(__NR_close, s);
}

// Is this segment a part of one that is loaded and can be read?
static bool is_readable(const Elf64_Phdr* headers, unsigned long count, const Elf64_Phdr* segment) {
  for (unsigned long i = 0; i < count; ++i) {
    const uint64_t distance = segment->p_vaddr - headers[i].p_vaddr;
    if (headers[i].p_type == PT_LOAD && (headers[i].p_flags & PF_R) != 0 &&
        distance <= headers[i].p_filesz && segment->p_filesz <= headers[i].p_filesz - distance)
      return true;
  }
  return false;
}

// Has the segment at `at` a note of Go's: its build id?
static bool has_go_note_in(uint64_t at, uint64_t end) {
  while (at + sizeof(Elf64_Nhdr) + sizeof(WEFT_GO_NOTE) <= end) {
    const Elf64_Nhdr* note = (const Elf64_Nhdr*)at;
    const char* name = (const char*)(note + 1);
    if (note->n_namesz == sizeof(WEFT_GO_NOTE) && name[0] == 'G' && name[1] == 'o' &&
        name[2] == '\0')
      return true;
    at +=
        sizeof(Elf64_Nhdr) + ((note->n_namesz + 3ull) & ~3ull) + ((note->n_descsz + 3ull) & ~3ull);
  }
  return false;
}

// A program of Go without a build id is known to an agent only, which says so (WEFT_HOOKS_OF_GO).
static bool is_go_program(void) {
  const Elf64_Phdr* headers = (const Elf64_Phdr*)weft_auxiliary(AT_PHDR);
  const unsigned long count = weft_auxiliary(AT_PHNUM);
  if (weft_environment(WEFT_HOOKS_OF_GO) != NULL) return true;
  if (headers == NULL || weft_auxiliary(AT_PHENT) != sizeof(Elf64_Phdr)) return false;
  const uint64_t bias = weft_program_bias(headers, count);
  for (unsigned long i = 0; i < count; ++i) {
    const uint64_t at = bias + headers[i].p_vaddr;
    if (headers[i].p_type == PT_NOTE && is_readable(headers, count, &headers[i]) &&
        has_go_note_in(at, at + headers[i].p_filesz))
      return true;
  }
  return false;
}

// Under a filter that was there at exec, the areas are made without a trial: mmap and mprotect are
// calls that ld.so has just made itself, and no page is ever writable and executable. The trial
// comes before the agent is called. Agents hook only processes that map their control file.
void weft_hooks_start(void) {
  const bool is_attached = weft_environment(WEFT_HOOKS_ATTACHED) != NULL;
  if (weft_process.on_valgrind || weft_silent) return;
  if (weft_process.own_control && !is_attached) return;
  const bool are_wanted = weft_rules_have_flag(WEFT_CHANNEL_FUNCTIONS);
  if (are_wanted && !weft_seccomp_may_call()) return;
  make_areas(!are_wanted && !is_attached);
  weft_hooks.version = WEFT_HOOKS_VERSION;
  weft_hooks.enter = (uint64_t)(uintptr_t)&weft_hook_entry;
  if (is_go_program()) weft_hooks.enter_go = weft_hooks_go_start();
  weft_hooks.places.silent = (uintptr_t)&weft_silent;
  weft_hooks.places.filter = (uintptr_t)&weft_process.filter;
  weft_hooks.places.clock_known = (uintptr_t)&weft_anchor->knows_clock_offset;
  weft_calls_tell(&weft_hooks.places);
  // release: an agent that sees the magic number sees all
  __atomic_store_n(&weft_hooks.magic, WEFT_HOOKS_MAGIC, __ATOMIC_RELEASE);
  if (are_wanted) call_agent();
}

void weft_hooks_make_everything(void) {
  for (uint32_t i = 0; i < WEFT_HOOK_AREAS; ++i) {
    const struct weft_hook_table* table =
        (const struct weft_hook_table*)(uintptr_t)weft_hooks.areas[i].data;
    if (weft_hooks.areas[i].code == 0) continue;
    // acquire: an agent appends a hook when it is whole
    uint64_t at = __atomic_load_n(&table->first, __ATOMIC_ACQUIRE);
    while (at != 0) {
      const struct weft_hook* hook = (const struct weft_hook*)(uintptr_t)at;
      weft_hook_decide(hook);
      at = __atomic_load_n(&hook->next, __ATOMIC_ACQUIRE);  // acquire: as above
    }
  }
}

#else

void weft_hooks_start(void) {}
void weft_hooks_make_everything(void) {}

#endif
