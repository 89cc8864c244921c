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
#include "ust-injector/preload/registry.h"
#include "ust-injector/preload/rules.h"
#include "ust-injector/preload/seccomp.h"

// The program's area lies below the program, because its heap grows above it. It is tried at
// distances that double; thunks reach 2 GiB.
#define WEFT_AREA_GAP (1ull << 20)
#define WEFT_AREA_FARTHEST (1ull << 30)
#define WEFT_LOWEST_ADDRESS 65536u /* vm.mmap_min_addr */
#define WEFT_CALL_LISTS 16u
#define WEFT_TEXT_PIECE 64u  // bytes that are read at once; pages are multiples of it
#define WEFT_CALL_NUMBER_BITS 12u
// What an event has: arguments; result, duration, depth. Emit reads a multiple of 8 bytes.
#define WEFT_IMAGE_WORDS (WEFT_HOOK_MAX_VALUES + 3)
// Looking at all taken calls takes milliseconds. If it frees fewer than WEFT_COLLECT_FEW, the next
// WEFT_COLLECT_PAUSE calls that find none free go without.
#define WEFT_COLLECT_FEW 64u
#define WEFT_COLLECT_PAUSE 1024u
#define WEFT_LONGEST_JUMPS 64u  // from function to function, that are followed

// An agent finds it in the table of symbols.
__attribute__((visibility("default"))) struct weft_hooks weft_hooks;

_Static_assert(WEFT_HOOK_STUBS == 1u << WEFT_CALL_NUMBER_BITS, "a number of a call fits");

// The texts of one call, and where each of them lies.
struct texts {
  struct weft_segment segments[WEFT_HOOK_MAX_VALUES];
  uint32_t count;
  uint32_t bytes;
  char text[WEFT_HOOK_TEXT_BYTES];
};

// One call of a function: a stub, its data, and this. The owner of a free call is its list, or the
// thread that took it from there and did not publish it yet.
struct call {
  struct weft_hook* hook;
  uint64_t* slot;  // where the return address lies
  uint64_t turn;   // odd: published, the function runs. Each change adds 1
  uint64_t next;   // free: the next one of its list; 0: none
  uint64_t begin;  // time of the entry, if the whole call is recorded
  struct weft_open_call open;
  uint32_t argument_bytes;
  uint64_t arguments[WEFT_HOOK_MAX_VALUES];  // of the entry, if an event of the end has them
  struct texts texts;                        // likewise
};

// WEFT_HOOK_STUBS calls; NULL before the first one. Pages that no call uses take no memory.
static struct call* calls;

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

// --- calls whose exit is recorded ----------------------------------------------------------------

struct weft_hook_stub_data weft_hook_stub_data[WEFT_HOOK_STUBS] __attribute__((aligned(4096)));

// Free calls: a number and, above it, a count of changes, so that a list is not taken for unchanged
// when its first call went and came back. Threads use different lists. Each on a cache line.
static struct {
  uint64_t head;
  uint64_t reserved[7];
} lists[WEFT_CALL_LISTS] __attribute__((aligned(64)));
static uint32_t used;     // calls from here on were never taken
static uint32_t to_pass;  // calls that find none free, and do not collect

static uint32_t own_list(void) {
  return ((uint32_t)(weft_thread_pointer() >> 12) * 2654435761u >> 16) % WEFT_CALL_LISTS;
}

// The first place of each page of stubs is no stub.
static bool is_stub(uint32_t number) { return number % WEFT_HOOK_STUBS_PER_PAGE != 0; }

static uint64_t stub_of(uint32_t number) {
  return (uint64_t)(uintptr_t)weft_hook_stubs + (uint64_t)number * WEFT_HOOK_STUB_BYTES;
}

// The address that the stub's call returns to.
static uint64_t return_address_of(uint32_t number) { return stub_of(number) + 6; }

static uint32_t take_from(uint32_t list) {
  // acquire: `next` of the call was written before the call was put into the list
  uint64_t head = __atomic_load_n(&lists[list].head, __ATOMIC_ACQUIRE);
  while ((uint32_t)head != 0) {
    // relaxed: if another thread took the call meanwhile, the head differs below
    const uint64_t next = __atomic_load_n(&calls[(uint32_t)head].next, __ATOMIC_RELAXED);
    const uint64_t after = ((head >> 32) + 1) << 32 | next;
    // acquire: as above, for the call that is taken and for the next try
    if (__atomic_compare_exchange_n(&lists[list].head, &head, after, false, __ATOMIC_ACQUIRE,
                                    __ATOMIC_ACQUIRE)) {
      break;
    }
  }
  return (uint32_t)head;
}

static void give_back(uint32_t number) {
  const uint32_t list = own_list();
  // relaxed: the exchange orders it
  uint64_t head = __atomic_load_n(&lists[list].head, __ATOMIC_RELAXED);
  uint64_t after = 0;
  do {
    // relaxed: as above
    __atomic_store_n(&calls[number].next, (uint32_t)head, __ATOMIC_RELAXED);
    after = ((head >> 32) + 1) << 32 | number;
    // release: pairs with the acquire of take_from; relaxed: as above
  } while (!__atomic_compare_exchange_n(&lists[list].head, &head, after, false, __ATOMIC_RELEASE,
                                        __ATOMIC_RELAXED));
}

// Ends a call whose `turn` was odd. False: another thread did. acq_rel: what was read of the call
// before belongs to this turn
static bool end_turn(uint32_t number, uint64_t turn) {
  return __atomic_compare_exchange_n(&calls[number].turn, &turn, turn + 1, false, __ATOMIC_ACQ_REL,
                                     __ATOMIC_RELAXED);
}

// Returns the number of the call to which the content of a slot belongs: the content is the return
// address of the call's stub, or, until its turn ends, its number, which the stub pushes. 0: none.
static uint32_t number_in(uint64_t content) {
  if (content < WEFT_HOOK_STUBS) return (uint32_t)content;
  const uint64_t distance = content - stub_of(0);
  return distance < WEFT_HOOK_STUBS * WEFT_HOOK_STUB_BYTES
             ? (uint32_t)(distance / WEFT_HOOK_STUB_BYTES)
             : 0;
}

// Was the function left without a return? While it runs, its slot leads to its stub, also through
// the stubs of functions that were jumped to at the end of another one. A later call at the same
// place of the stack, after an exception, say, leads elsewhere. False also if another thread just
// changes one of these calls.
static bool is_left(uint64_t content, const uint64_t* slot, uint32_t number) {
  if (__builtin_expect(content == return_address_of(number), 1)) return false;
  for (uint32_t i = 0; i < WEFT_LONGEST_JUMPS; ++i) {
    const uint32_t other = number_in(content);
    if (other == number) return false;
    if (other == 0) return true;
    // acquire: pairs with the release that published the call
    const uint64_t turn = __atomic_load_n(&calls[other].turn, __ATOMIC_ACQUIRE);
    const bool is_here = turn % 2 != 0 && calls[other].slot == slot;
    content = weft_hook_stub_data[other].returns_to;
    __atomic_thread_fence(__ATOMIC_ACQUIRE);  // what was read belongs to this turn, if it still is
    // relaxed: as above
    if (!is_here || __atomic_load_n(&calls[other].turn, __ATOMIC_RELAXED) != turn) return false;
  }
  return false;
}

static bool is_lost(const uint64_t* slot, uint32_t number) {
  uint64_t content = 0;
  switch (weft_seccomp_peek(&content, (uint64_t)(uintptr_t)slot, sizeof(content))) {
    case WEFT_PEEK_COPIED:
      return is_left(content, slot, number);
    case WEFT_PEEK_FAULT:
      return true;
    case WEFT_PEEK_UNKNOWN:
      return false;
  }
  return false;
}

static void collect(void) {
  uint32_t freed = 0;
  // relaxed: there was no memory for calls, or there is
  const uint32_t count = __atomic_load_n(&calls, __ATOMIC_RELAXED) != NULL ? WEFT_HOOK_STUBS : 0;
  for (uint32_t i = 0; i < count; ++i) {
    // acquire: pairs with the release that published the call
    const uint64_t turn = __atomic_load_n(&calls[i].turn, __ATOMIC_ACQUIRE);
    if (turn % 2 == 0 || !is_lost(calls[i].slot, i) || !end_turn(i, turn)) continue;
    give_back(i);
    ++freed;
  }
  // relaxed: only a pause
  if (freed < WEFT_COLLECT_FEW) __atomic_store_n(&to_pass, WEFT_COLLECT_PAUSE, __ATOMIC_RELAXED);
}

// Makes the memory of all calls, at the first one: an agent may hook functions at any time. Under a
// filter that was there at exec it is no new call: ld.so and libc make it, too.
static bool make_calls(void) {
  const size_t bytes = WEFT_HOOK_STUBS * sizeof(struct call);
  struct call* none = NULL;
  // acquire: the clock, which was learned before
  if (__atomic_load_n(&calls, __ATOMIC_ACQUIRE) != NULL) return true;
  weft_clock_start();
  const long map = weft_syscall(__NR_mmap, 0, bytes, 3 /* read, write */,
                                MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (weft_failed(map)) return false;
  // release: as above. Another thread may have been sooner
  if (!__atomic_compare_exchange_n(&calls, &none, (struct call*)map, false, __ATOMIC_RELEASE,
                                   __ATOMIC_RELAXED)) {
    weft_syscall(__NR_munmap, map, bytes);
  }
  return true;
}

static uint32_t take_new(void) {
  if (!make_calls()) return 0;
  // relaxed: each thread gets another number
  while (__atomic_load_n(&used, __ATOMIC_RELAXED) < WEFT_HOOK_STUBS) {
    const uint32_t number = __atomic_fetch_add(&used, 1, __ATOMIC_RELAXED);
    if (number < WEFT_HOOK_STUBS && is_stub(number)) return number;
  }
  return 0;
}

static uint32_t take_any(void) {
  uint32_t number = take_new();
  for (uint32_t i = 0; i < WEFT_CALL_LISTS && number == 0; ++i) number = take_from(i);
  return number;
}

// Returns the number of a call; 0: all are taken.
static uint32_t take(void) {
  uint32_t number = take_from(own_list());
  if (__builtin_expect(number == 0, 0)) number = take_any();
  if (__builtin_expect(number != 0, 1)) return number;
  // relaxed: a count that may be wrong by some
  const uint32_t pass = __atomic_load_n(&to_pass, __ATOMIC_RELAXED);
  if (pass != 0) {
    __atomic_store_n(&to_pass, pass - 1, __ATOMIC_RELAXED);  // relaxed: as above
    return 0;
  }
  collect();
  return take_any();
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

// `slot`: where the return address lies, below the arguments on the stack.
static uint64_t value_of(const struct weft_hook_registers* r, const struct weft_hook_value* v,
                         const uint64_t* slot) {
  switch (v->source) {
    case WEFT_HOOK_GENERAL:
      return r->general[v->index % 6];
    case WEFT_HOOK_FLOATING:
      return r->floating[v->index % 16][0];
    case WEFT_HOOK_STACK:
      return slot[1 + v->index];
    case WEFT_HOOK_RESULT:
      return r->rax;
    default:
      return 0;
  }
}

static void* put(void* to, uint64_t value, uint32_t size) {
  __builtin_memcpy(to, &value, sizeof(value));
  return (uint8_t*)to + size;
}

static uint32_t put_text(struct texts* texts, const char* text, uint32_t size) {
  const uint32_t room = WEFT_HOOK_TEXT_BYTES - texts->bytes;
  if (size > room) size = room;
  __builtin_memcpy(texts->text + texts->bytes, text, size);
  texts->bytes += size;
  return size;
}

// Copies the text at the program's address, up to its NUL or to memory that cannot be read. Returns
// its bytes. A piece of the text lies in one page, and begins at a multiple of 8, as peek takes it.
static uint32_t read_text(struct texts* texts, uint64_t from) {
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
              const uint64_t* slot, void* image, struct texts* texts) {
  void* to = image;
  for (uint32_t i = 0; i < hook->value_count && i < WEFT_HOOK_MAX_VALUES; ++i) {
    uint64_t value = value_of(registers, &hook->values[i], slot);
    if (texts != NULL && hook->values[i].kind == WEFT_HOOK_TEXT) {
      struct weft_segment* segment = &texts->segments[texts->count++];
      segment->data = texts->text + texts->bytes;
      value = read_text(texts, value);
      segment->size = (uint32_t)value;
      segment->reserved = 0;
    }
    to = put(to, value, hook->values[i].size);
  }
  return (uint32_t)((uint8_t*)to - (uint8_t*)image);
}

static void emit(uint64_t event, const void* image, const struct texts* texts,
                 const struct weft_hook* hook) {
  event_at(event)->emit(event_at(event), image, texts != NULL ? texts->segments : NULL,
                        (const void*)(uintptr_t)hook->address);
}

// The texts of a call lie in its own memory until it ends.
static void keep_texts(struct texts* to, const struct texts* from) {
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

static weft_call_id call_id(uint32_t number, uint64_t turn) {
  return turn << WEFT_CALL_NUMBER_BITS | number;
}

static uint32_t number_of(weft_call_id id) {
  return (uint32_t)id & ((1u << WEFT_CALL_NUMBER_BITS) - 1);
}

bool weft_hook_find_call(weft_call_id id, struct weft_call_place* place) {
  const uint32_t number = number_of(id);
  // acquire: pairs with the release that published the call
  const uint64_t turn = __atomic_load_n(&calls[number].turn, __ATOMIC_ACQUIRE);
  *place = (struct weft_call_place){.slot = calls[number].slot,
                                    .stub = return_address_of(number),
                                    .around = calls[number].open.around,
                                    .depth = calls[number].open.depth};
  return call_id(number, turn) == id;
}

bool weft_hook_is_left(weft_call_id id, const struct weft_call_place* place, bool is_readable) {
  const uint32_t number = number_of(id);
  return is_readable ? is_left(*place->slot, place->slot, number)
                     : weft_seccomp_may_peek() && is_lost(place->slot, number);
}

static inline __attribute__((always_inline)) const void* enter(
    const struct weft_hook_registers* registers, struct weft_hook* hook, uint64_t* slot,
    struct texts* texts) {
  const bool entry = is_wanted(hook->entry), exit = is_wanted(hook->exit),
             call = is_call_wanted(hook);
  if (!entry && !exit && !call) return NULL;
  const struct weft_open_call open = weft_depth_find(slot);
  uint64_t image[WEFT_IMAGE_WORDS] = {0};
  const uint32_t bytes = put_arguments(registers, hook, slot, image, texts);
  if (entry) {
    put((uint8_t*)image + bytes, open.depth, sizeof(open.depth));
    emit(hook->entry, image, texts, hook);
  }
  if (!exit && !call) return NULL;
  const uint32_t number = take();
  if (__builtin_expect(number == 0, 0)) {
    if (exit) weft_emit_discard(event_at(hook->exit), WEFT_DISCARD_MEMORY);
    if (call) weft_emit_discard(event_at(hook->call), WEFT_DISCARD_MEMORY);
    return NULL;
  }
  weft_hook_stub_data[number].returns_to = *slot;
  weft_hook_stub_data[number].calls = hook->resume;
  calls[number].hook = hook;
  calls[number].slot = slot;
  calls[number].open = open;
  if (call || (hook->flags & WEFT_HOOK_EXIT_ARGUMENTS) != 0) {
    calls[number].argument_bytes = bytes;
    __builtin_memcpy(calls[number].arguments, image, sizeof(calls[number].arguments));
    if (texts != NULL) keep_texts(&calls[number].texts, texts);
  }
  const uint64_t turn = calls[number].turn + 1;
  // The stub's call writes the same; but a published call whose slot holds something else is lost.
  *slot = return_address_of(number);
  // release: all of it comes before
  __atomic_store_n(&calls[number].turn, turn, __ATOMIC_RELEASE);
  weft_depth_push(call_id(number, turn));
  calls[number].begin = call ? weft_clock_monotonic() : 0;
  return (const void*)(uintptr_t)stub_of(number);
}

static __attribute__((noinline)) const void* enter_with_texts(
    const struct weft_hook_registers* registers, struct weft_hook* hook, uint64_t* slot) {
  struct texts texts;
  texts.count = 0;
  texts.bytes = 0;
  return enter(registers, hook, slot, &texts);
}

const void* weft_hook_enter(const struct weft_hook_registers* registers, struct weft_hook* hook,
                            uint64_t* slot) {
  if (__builtin_expect((hook->flags & WEFT_HOOK_HAS_TEXTS) != 0, 0))
    return enter_with_texts(registers, hook, slot);
  return enter(registers, hook, slot, NULL);
}

uint64_t weft_hook_leave(const struct weft_hook_registers* registers, uint64_t index) {
  const uint32_t number = (uint32_t)index;
  struct weft_hook* hook = calls[number].hook;
  const uint64_t returns_to = weft_hook_stub_data[number].returns_to;
  const uint64_t result = value_of(registers, &hook->result, NULL);
  const uint32_t result_bytes = hook->result.source == WEFT_HOOK_NONE ? 0 : hook->result.size;
  const struct weft_open_call open = calls[number].open;
  // A call that began before `call` was on has no time.
  const bool call = calls[number].begin != 0 && is_call_wanted(hook);
  const bool exit = is_wanted(hook->exit);
  uint64_t of_call[WEFT_IMAGE_WORDS], of_exit[WEFT_IMAGE_WORDS];
  if (call) {
    const uint64_t duration = weft_clock_monotonic() - calls[number].begin;
    __builtin_memcpy(of_call, calls[number].arguments, sizeof(calls[number].arguments));
    void* to = (uint8_t*)of_call + calls[number].argument_bytes;
    to = put(put(to, result, result_bytes), duration, sizeof(duration));
    put(to, open.depth, sizeof(open.depth));
  }
  if (exit) {
    void* to = put(put(of_exit, result, result_bytes), open.depth, sizeof(open.depth));
    if ((hook->flags & WEFT_HOOK_EXIT_ARGUMENTS) != 0)
      __builtin_memcpy(to, calls[number].arguments, sizeof(calls[number].arguments));
  }
  const bool has_texts = (hook->flags & WEFT_HOOK_HAS_TEXTS) != 0;
  const struct texts* texts = has_texts ? &calls[number].texts : NULL;
  if (exit) emit(hook->exit, of_exit, texts, hook);
  if (call) emit(hook->call, of_call, texts, hook);
  weft_depth_pop(&open);
  if (end_turn(number, calls[number].turn)) give_back(number);
  return returns_to;
}

#else

void weft_hooks_start(void) {}

#endif
