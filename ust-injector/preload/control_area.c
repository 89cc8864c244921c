// SPDX-License-Identifier: Apache-2.0
// See control_area.h.
#include "ust-injector/preload/control_area.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/mman.h>
#include <sys/stat.h>

#include "ust-injector/preload/clock.h"
#include "ust-injector/preload/own_control.h"
#include "ust-injector/preload/process.h"

#define WEFT_AT_EMPTY_PATH 0x1000

static bool is_sound(const struct weft_control_header* c, uint64_t size) {
  return c->magic == WEFT_CONTROL_MAGIC && c->major == WEFT_CONTROL_MAJOR && c->features == 0 &&
         c->header_size >= sizeof(*c) && c->total_size <= size &&
         c->word_count == WEFT_CONTROL_WORDS && c->words_offset % 64 == 0 &&
         c->words_offset <= size - 4ull * WEFT_CONTROL_WORDS && c->arena_offset <= size &&
         c->arena_size <= size - c->arena_offset;
}

// Takes over what the agent decided for ring sets.
static bool take_config(const struct weft_control_header* c) {
  if (c->slot_count < 1 || c->slot_count >= WEFT_RING_MAX_SLOTS) return false;
  if (c->clock != WEFT_CLOCK_TSC && c->clock != WEFT_CLOCK_MONOTONIC) return false;
  weft_process.slot_count = c->slot_count;
  weft_process.clock = c->clock;
  if (c->clock == WEFT_CLOCK_MONOTONIC) weft_clock_start();
  return true;
}

static void use(const uint8_t* memory, uint64_t size, const struct weft_control_header* c) {
  weft_process.control = memory;
  weft_process.control_size = size;
  weft_process.arena_offset = c->arena_offset;
  weft_process.words = (const uint32_t*)(memory + c->words_offset);
}

bool weft_control_area_learn(void) {
  struct weft_control_header header;
  if (!weft_process.own_control) return true;
  memcpy(&header, weft_process.control, sizeof(header));
  return take_config(&header);
}

// Maps the agent's file, and closes fd.
static bool map_file(long fd) {
  struct weft_control_header header;
  struct stat file = {0};
  long map = -EINVAL;
  if (weft_syscall(__NR_newfstatat, fd, "", &file, WEFT_AT_EMPTY_PATH) == 0 &&
      file.st_size >= (long)(sizeof(header) + 4ul * WEFT_CONTROL_WORDS)) {
    map = weft_syscall(__NR_mmap, 0, file.st_size, 1 /* PROT_READ */, MAP_SHARED, fd, 0);
  }
  weft_syscall(__NR_close, fd);
  const long size = file.st_size;
  if (weft_failed(map)) return false;

  memcpy(&header, (const void*)map, sizeof(header));
  if (!is_sound(&header, (uint64_t)size) || !take_config(&header)) {
    weft_syscall(__NR_munmap, map, size);
    return false;
  }
  use((const uint8_t*)map, (uint64_t)size, &header);
  return true;
}

// No agent has been here, so this makes memory that a later one finds.
static bool make_area(void) {
  const uint8_t* memory = weft_own_control_make(weft_process.filter != WEFT_FILTER_NONE);
  if (memory == NULL) return false;
  use(memory, WEFT_CONTROL_TOTAL_BYTES, (const struct weft_control_header*)memory);
  weft_process.own_control = 1;
  return true;
}

bool weft_control_area_start(const char* path) {
  const long fd = weft_syscall(__NR_openat, AT_FDCWD, path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW, 0);
  return fd >= 0 ? map_file(fd) : make_area();
}
