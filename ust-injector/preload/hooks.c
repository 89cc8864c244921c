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
#include "ust-injector/preload/decide.h"
#include "ust-injector/preload/emit.h"
#include "ust-injector/preload/environment.h"
#include "ust-injector/preload/registry.h"
#include "ust-injector/preload/rules.h"
#include "ust-injector/preload/seccomp.h"

#define WEFT_AREA_BYTES (WEFT_HOOK_CODE_BYTES + WEFT_HOOK_DATA_BYTES)
// The program's area lies below the program, because its heap grows above it. It is tried at
// distances that double; thunks reach 2 GiB.
#define WEFT_AREA_GAP (1ull << 20)
#define WEFT_AREA_FARTHEST (1ull << 30)
#define WEFT_LOWEST_ADDRESS 65536u /* vm.mmap_min_addr */
#define WEFT_CALL_LISTS 16u
// Looking at all taken calls takes milliseconds. If it frees fewer than WEFT_COLLECT_FEW, the next
// WEFT_COLLECT_PAUSE calls that find none free go without.
#define WEFT_COLLECT_FEW 64u
#define WEFT_COLLECT_PAUSE 1024u

// An agent finds it in the table of symbols.
__attribute__((visibility("default"))) struct weft_hooks weft_hooks;

// --- start ---------------------------------------------------------------------------------------

static void set_area(uint32_t number, long map) {
  const uint64_t code = (uint64_t)map;
  if (weft_syscall(__NR_mprotect, code + WEFT_HOOK_CODE_BYTES, WEFT_HOOK_DATA_BYTES,
                   3 /* read, write */) != 0) {
    weft_syscall(__NR_munmap, map, WEFT_AREA_BYTES);
    return;
  }
  weft_hooks.areas[number] = (struct weft_hook_area){.code = code,
                                                     .code_bytes = WEFT_HOOK_CODE_BYTES,
                                                     .data = code + WEFT_HOOK_CODE_BYTES,
                                                     .data_bytes = WEFT_HOOK_DATA_BYTES};
}

static long map_area(uint64_t where) {
  const int fixed = where != 0 ? MAP_FIXED_NOREPLACE : 0;
  const long map = weft_syscall(__NR_mmap, where, WEFT_AREA_BYTES, 5 /* read, execute */,
                                MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | fixed, -1, 0);
  if (weft_failed(map) || where == 0 || (uint64_t)map == where) return map;
  weft_syscall(__NR_munmap, map, WEFT_AREA_BYTES);  // Linux before 4.17 takes it for a hint
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

static void make_areas(void) {
  const uint64_t program = program_begin();
  for (uint64_t gap = WEFT_AREA_GAP; gap <= WEFT_AREA_FARTHEST && program != 0; gap *= 2) {
    // A program that is not position-independent begins at 4 MiB: there is no room for the gap.
    const uint64_t wanted = program > WEFT_AREA_BYTES + gap + WEFT_LOWEST_ADDRESS
                                ? program - WEFT_AREA_BYTES - gap
                                : WEFT_LOWEST_ADDRESS;
    if (wanted + WEFT_AREA_BYTES > program) break;
    const long map = map_area(wanted);
    if (weft_failed(map)) continue;
    set_area(0, map);
    break;
  }
  const long map = map_area(0);
  if (!weft_failed(map)) set_area(1, map);
}

// Waits until the agent closes the connection. Signals may come; the time is that of the clock.
static void wait_for_agent(long s) {
  int64_t now[2] = {0, 0};
  weft_syscall(__NR_clock_gettime, 1 /* CLOCK_MONOTONIC */, now);
  const int64_t end = now[0] * 1000 + now[1] / 1000000 + WEFT_HOOKS_PATIENCE_MS;
  for (;;) {
    weft_syscall(__NR_clock_gettime, 1, now);
    const int64_t left = end - (now[0] * 1000 + now[1] / 1000000);
    struct pollfd p = {.fd = (int)s, .events = POLLIN};
    const int64_t timeout[2] = {left / 1000, left % 1000 * 1000000};
    if (left <= 0) return;
    const long n = weft_syscall(__NR_ppoll, &p, 1, timeout, 0, 0);
    if (n > 0 || (n < 0 && n != -EINTR)) return;
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

// Under a filter that was there at exec nothing is done: ld.so makes none of these calls.
void weft_hooks_start(void) {
  if (weft_process.filter != WEFT_FILTER_NONE || weft_process.on_valgrind || weft_silent ||
      !weft_rules_have_flag(WEFT_CHANNEL_FUNCTIONS)) {
    return;
  }
  make_areas();
  weft_hooks.version = WEFT_HOOKS_VERSION;
  weft_hooks.enter = (uint64_t)(uintptr_t)&weft_hook_entry;
  // release: an agent that sees the magic number sees all
  __atomic_store_n(&weft_hooks.magic, WEFT_HOOKS_MAGIC, __ATOMIC_RELEASE);
  call_agent();
}

// --- calls whose exit is recorded ----------------------------------------------------------------

struct weft_hook_stub_data weft_hook_stub_data[WEFT_HOOK_STUBS] __attribute__((aligned(4096)));

// One call of a function: a stub, its data, and this. The owner of a free call is its list, or the
// thread that took it from there and did not publish it yet.
static struct {
  struct weft_hook* hook;
  uint64_t* slot;  // where the return address lies
  uint64_t turn;   // odd: published, the function runs. Each change adds 1
  uint64_t next;   // free: the next one of its list; 0: none
} calls[WEFT_HOOK_STUBS];

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

// Was the function left without a return? While it runs, the slot holds the return address of its
// stub, or that of the stub of a function that it jumped to at its end; then, until its turn ends,
// its number, which the stub pushes.
static bool is_lost(const uint64_t* slot, uint32_t number) {
  uint64_t content = 0;
  switch (weft_seccomp_peek(&content, (uint64_t)(uintptr_t)slot, sizeof(content))) {
    case WEFT_PEEK_COPIED:
      return content != number && (content < stub_of(0) || content >= stub_of(WEFT_HOOK_STUBS));
    case WEFT_PEEK_FAULT:
      return true;
    case WEFT_PEEK_UNKNOWN:
      return false;
  }
  return false;
}

static void collect(void) {
  uint32_t freed = 0;
  for (uint32_t i = 0; i < WEFT_HOOK_STUBS; ++i) {
    // acquire: pairs with the release that published the call
    const uint64_t turn = __atomic_load_n(&calls[i].turn, __ATOMIC_ACQUIRE);
    if (turn % 2 == 0 || !is_lost(calls[i].slot, i) || !end_turn(i, turn)) continue;
    give_back(i);
    ++freed;
  }
  // relaxed: only a pause
  if (freed < WEFT_COLLECT_FEW) __atomic_store_n(&to_pass, WEFT_COLLECT_PAUSE, __ATOMIC_RELAXED);
}

static uint32_t take_new(void) {
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

const void* weft_hook_enter(const struct weft_hook_registers* registers, struct weft_hook* hook,
                            uint64_t* slot) {
  const void* ip = (const void*)(uintptr_t)hook->address;
  if (hook->entry != 0 && is_on(event_at(hook->entry))) {
    uint64_t image[WEFT_HOOK_MAX_VALUES + 1] = {0};
    uint8_t* to = (uint8_t*)image;
    for (uint32_t i = 0; i < hook->value_count && i < WEFT_HOOK_MAX_VALUES; ++i) {
      const uint64_t value = value_of(registers, &hook->values[i], slot);
      __builtin_memcpy(to, &value, sizeof(value));
      to += hook->values[i].size;
    }
    event_at(hook->entry)->emit(event_at(hook->entry), image, NULL, ip);
  }
  if (hook->exit == 0 || !is_on(event_at(hook->exit))) return NULL;
  const uint32_t number = take();
  if (__builtin_expect(number == 0, 0)) {
    weft_emit_discard(event_at(hook->exit), WEFT_DISCARD_MEMORY);
    return NULL;
  }
  weft_hook_stub_data[number].returns_to = *slot;
  weft_hook_stub_data[number].calls = hook->resume;
  calls[number].hook = hook;
  calls[number].slot = slot;
  // The stub's call writes the same; but a published call whose slot holds something else is lost.
  *slot = return_address_of(number);
  // release: all of it comes before
  __atomic_store_n(&calls[number].turn, calls[number].turn + 1, __ATOMIC_RELEASE);
  return (const void*)(uintptr_t)stub_of(number);
}

uint64_t weft_hook_leave(const struct weft_hook_registers* registers, uint64_t index) {
  const uint32_t number = (uint32_t)index;
  struct weft_hook* hook = calls[number].hook;
  const uint64_t returns_to = weft_hook_stub_data[number].returns_to;
  if (end_turn(number, calls[number].turn)) give_back(number);
  if (is_on(event_at(hook->exit))) {
    const uint64_t image[2] = {value_of(registers, &hook->result, NULL)};
    event_at(hook->exit)
        ->emit(event_at(hook->exit), image, NULL, (const void*)(uintptr_t)hook->address);
  }
  return returns_to;
}

#else

void weft_hooks_start(void) {}

#endif
