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
#include "ust-injector/preload/clock.h"
#include "ust-injector/preload/decide.h"
#include "ust-injector/preload/emit.h"
#include "ust-injector/preload/environment.h"
#include "ust-injector/preload/hook_depth.h"
#include "ust-injector/preload/hooks_asm.h"
#include "ust-injector/preload/registry.h"
#include "ust-injector/preload/rules.h"
#include "ust-injector/preload/seccomp.h"

// The program's area lies below the program, because its heap grows above it. It is tried at
// distances that double; thunks reach 2 GiB.
#define WEFT_AREA_GAP (1ull << 20)
#define WEFT_AREA_FARTHEST (1ull << 30)
#define WEFT_LOWEST_ADDRESS 65536u /* vm.mmap_min_addr */
#define WEFT_TEXT_PIECE 64u        // bytes that are read at once; pages are multiples of it

// An agent finds it in the table of symbols.
__attribute__((visibility("default"))) struct weft_hooks weft_hooks;

// --- start ---------------------------------------------------------------------------------------

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
  uint64_t lowest = ~0ull, bias = 0;
  if (headers == NULL || weft_auxiliary(AT_PHENT) != sizeof(Elf64_Phdr)) return 0;
  for (unsigned long i = 0; i < count; ++i) {
    if (headers[i].p_type == PT_PHDR) bias = (uint64_t)headers - headers[i].p_vaddr;
    if (headers[i].p_type == PT_LOAD && headers[i].p_vaddr < lowest) lowest = headers[i].p_vaddr;
  }
  return lowest == ~0ull ? 0 : (bias + lowest) & ~4095ull;
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

// Under a filter that was there at exec, the areas are made without a trial: mmap and mprotect are
// calls that ld.so has just made itself, and no page is ever writable and executable. The trial
// comes before the agent is called. Agents hook only processes that map their control file.
void weft_hooks_start(void) {
  if (weft_process.on_valgrind || weft_silent || weft_process.own_control) return;
  const bool are_wanted = weft_rules_have_flag(WEFT_CHANNEL_FUNCTIONS);
  if (are_wanted && !weft_seccomp_may_call()) return;
  make_areas(!are_wanted);
  weft_hooks.version = WEFT_HOOKS_VERSION;
  weft_hooks.enter = (uint64_t)(uintptr_t)&weft_hook_entry;
  // release: an agent that sees the magic number sees all
  __atomic_store_n(&weft_hooks.magic, WEFT_HOOKS_MAGIC, __ATOMIC_RELEASE);
  if (are_wanted) call_agent();
}

// --- events --------------------------------------------------------------------------------------

static struct weft_event* event_at(uint64_t address) {
  return (struct weft_event*)(uintptr_t)address;
}

// Fills in what the agent cannot know. Threads that do it at once store the same.
static void prepare(struct weft_event* event) {
  void* none = NULL;
  // relaxed: all is ordered by `emit`
  __atomic_store_n(&event->enabled, weft_registry_word(weft_event_name(event)), __ATOMIC_RELAXED);
  __atomic_compare_exchange_n(&event->state, &none, (void*)(uintptr_t)&weft_undecided, false,
                              __ATOMIC_RELAXED, __ATOMIC_RELAXED);
  // release: a thread that finds `emit` finds the rest
  __atomic_store_n(&event->emit, weft_emit_for(event), __ATOMIC_RELEASE);
}

static bool is_on(struct weft_event* event) {
  // acquire: as above
  if (__builtin_expect(__atomic_load_n(&event->emit, __ATOMIC_ACQUIRE) == NULL, 0)) prepare(event);
  // relaxed: emit decides exactly
  return __atomic_load_n(event->enabled, __ATOMIC_RELAXED) != 0;
}

static uint32_t put_text(struct weft_texts* texts, const char* text, uint32_t size) {
  const uint32_t room = WEFT_HOOK_TEXT_BYTES - texts->bytes;
  if (size > room) size = room;
  __builtin_memcpy(texts->text + texts->bytes, text, size);
  texts->bytes += size;
  return size;
}

// Copies the text at the program's address, up to its NUL or to memory that cannot be read. Returns
// its bytes. A piece of the text lies in one page, and begins at a multiple of 8, as peek takes it.
static uint32_t read_text(struct weft_texts* texts, uint64_t from) {
  char piece[WEFT_TEXT_PIECE];
  uint32_t size = 0;
  if (!weft_seccomp_may_peek()) return put_text(texts, "(not read)", 10);
  while (texts->bytes < WEFT_HOOK_TEXT_BYTES) {
    const uint64_t at = from & ~(uint64_t)7;
    const uint64_t end = (at | (WEFT_TEXT_PIECE - 1)) + 1;
    if (weft_seccomp_peek(piece, at, end - at) != WEFT_PEEK_COPIED)
      return size != 0 ? size : put_text(texts, "(fault)", 7);
    uint32_t i = (uint32_t)(from - at);
    const uint32_t first = i;
    while (i < end - at && piece[i] != 0) ++i;
    size += put_text(texts, piece + first, i - first);
    if (i < end - at) return size;
    from = end;
  }
  return size;
}

// Writes the arguments into an image. Returns their bytes. `texts`: NULL if the hook has none.
static inline __attribute__((always_inline)) uint32_t
put_arguments(const struct weft_hook_registers* registers, const struct weft_hook* hook,
              void* image, struct weft_texts* texts) {
  uint8_t* to = image;
  for (uint32_t i = 0; i < hook->value_count && i < WEFT_HOOK_MAX_VALUES; ++i) {
    uint64_t value = weft_hook_value_of(registers, &hook->values[i]);
    if (texts != NULL && hook->values[i].kind == WEFT_HOOK_TEXT) {
      struct weft_segment* segment = &texts->segments[texts->count++];
      segment->data = texts->text + texts->bytes;
      value = read_text(texts, value);
      segment->size = (uint32_t)value;
      segment->reserved = 0;
    }
    to = weft_hook_put(to, value, hook->values[i].size);
  }
  return (uint32_t)(to - (uint8_t*)image);
}

static void emit(uint64_t event, const void* image, const struct weft_texts* texts,
                 const struct weft_hook* hook) {
  event_at(event)->emit(event_at(event), image, texts != NULL ? texts->segments : NULL,
                        (const void*)(uintptr_t)hook->address);
}

// The texts of a call lie in its own memory until it ends.
static void keep_texts(struct weft_texts* to, const struct weft_texts* from) {
  to->count = from->count;
  to->bytes = from->bytes;
  __builtin_memcpy(to->text, from->text, from->bytes);
  for (uint32_t i = 0; i < from->count; ++i) {
    to->segments[i] = from->segments[i];
    to->segments[i].data = to->text + ((const char*)from->segments[i].data - from->text);
  }
}

static bool is_wanted(uint64_t event) { return event != 0 && is_on(event_at(event)); }

// Nothing is recorded of a program that forbade reading the clock.
static bool is_call_wanted(const struct weft_hook* hook) {
  return is_wanted(hook->call) && !weft_process.no_clock;
}

static inline __attribute__((always_inline)) const void* enter(
    const struct weft_hook_registers* registers, struct weft_hook* hook, struct weft_texts* texts) {
  const bool entry = is_wanted(hook->entry), exit = is_wanted(hook->exit),
             call = is_call_wanted(hook);
  if (!entry && !exit && !call) return NULL;
  uint64_t* slot = weft_hook_slot(registers);
  struct weft_depth* thread = weft_depth_own();
  struct weft_open_call open;
  weft_depth_find(thread, slot, true, &open);
  uint64_t image[WEFT_HOOK_IMAGE_WORDS] = {0};
  const uint32_t bytes = put_arguments(registers, hook, image, texts);
  if (entry) {
    weft_hook_put((uint8_t*)image + bytes, open.depth, sizeof(open.depth));
    emit(hook->entry, image, texts, hook);
  }
  if (!exit && !call) return NULL;
  const uint32_t number = weft_call_take();
  if (__builtin_expect(number == 0, 0)) {
    if (exit) weft_emit_discard(event_at(hook->exit), WEFT_DISCARD_MEMORY);
    if (call) weft_emit_discard(event_at(hook->call), WEFT_DISCARD_MEMORY);
    return NULL;
  }
  struct weft_hook_call* of = &weft_hook_calls[number];
  if (call || (hook->flags & WEFT_HOOK_EXIT_ARGUMENTS) != 0) {
    of->argument_bytes = bytes;
    __builtin_memcpy(of->arguments, image, sizeof(of->arguments));
    if (texts != NULL) keep_texts(&of->texts, texts);
  }
  const void* stub = weft_call_publish(number, hook, slot, &open);
  weft_depth_set(thread, weft_call_id_of(number, of->turn));
  of->begin = call ? weft_clock_monotonic() : 0;
  return stub;
}

static __attribute__((noinline)) const void* enter_with_texts(
    const struct weft_hook_registers* registers, struct weft_hook* hook) {
  struct weft_texts texts;
  texts.count = 0;
  texts.bytes = 0;
  return enter(registers, hook, &texts);
}

const void* weft_hook_enter_slowly(const struct weft_hook_registers* registers,
                                   struct weft_hook* hook) {
  if (__builtin_expect((hook->flags & WEFT_HOOK_HAS_TEXTS) != 0, 0))
    return enter_with_texts(registers, hook);
  return enter(registers, hook, NULL);
}

uint64_t weft_hook_leave_slowly(const struct weft_hook_registers* registers, uint64_t index) {
  const uint32_t number = (uint32_t)index;
  const struct weft_hook_call* of = &weft_hook_calls[number];
  struct weft_hook* hook = of->hook;
  const uint64_t returns_to = weft_hook_stub_data[number].returns_to;
  const uint64_t result = weft_hook_value_of(registers, &hook->result);
  const uint32_t result_bytes = hook->result.source == WEFT_HOOK_NONE ? 0 : hook->result.size;
  const struct weft_open_call open = of->open;
  // A call that began before `call` was on has no time.
  const bool call = of->begin != 0 && is_call_wanted(hook);
  const bool exit = is_wanted(hook->exit);
  uint64_t of_call[WEFT_HOOK_IMAGE_WORDS], of_exit[WEFT_HOOK_IMAGE_WORDS];
  if (call) {
    const uint64_t duration = weft_clock_monotonic() - of->begin;
    __builtin_memcpy(of_call, of->arguments, sizeof(of->arguments));
    uint8_t* to = (uint8_t*)of_call + of->argument_bytes;
    to = weft_hook_put(weft_hook_put(to, result, result_bytes), duration, sizeof(duration));
    weft_hook_put(to, open.depth, sizeof(open.depth));
  }
  if (exit) {
    uint8_t* to = weft_hook_put((uint8_t*)of_exit, result, result_bytes);
    to = weft_hook_put(to, open.depth, sizeof(open.depth));
    if ((hook->flags & WEFT_HOOK_EXIT_ARGUMENTS) != 0)
      __builtin_memcpy(to, of->arguments, sizeof(of->arguments));
  }
  const bool has_texts = (hook->flags & WEFT_HOOK_HAS_TEXTS) != 0;
  const struct weft_texts* texts = has_texts ? &of->texts : NULL;
  if (exit) emit(hook->exit, of_exit, texts, hook);
  if (call) emit(hook->call, of_call, texts, hook);
  weft_depth_set(weft_depth_own(), open.newest);
  weft_call_end(number);
  return returns_to;
}

#else

void weft_hooks_start(void) {}

#endif
