// SPDX-License-Identifier: Apache-2.0
// See hook_slow.h.
#include "ust-injector/preload/hook_slow.h"

#if defined(__x86_64__)

#include "ust-injector/preload/clock.h"
#include "ust-injector/preload/decide.h"
#include "ust-injector/preload/emit.h"
#include "ust-injector/preload/hook_calls.h"
#include "ust-injector/preload/hook_depth.h"
#include "ust-injector/preload/hook_values.h"
#include "ust-injector/preload/registry.h"

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

// Writes the arguments of a hook that reads no memory into an image. Returns what is behind them.
static inline __attribute__((always_inline)) uint8_t* put_numbers(
    const struct weft_hook_registers* registers, const struct weft_hook* hook, uint8_t* to) {
  for (uint32_t i = 0; i < hook->value_count && i < WEFT_HOOK_MAX_VALUES; ++i)
    to = weft_hook_put(to, weft_hook_value_of(registers, &hook->values[i]), hook->values[i].size);
  return to;
}

static void emit(uint64_t event, const void* image, const struct weft_segment* segments,
                 const struct weft_hook* hook) {
  event_at(event)->emit(event_at(event), image, segments, (const void*)(uintptr_t)hook->address);
}

static bool is_wanted(uint64_t event) { return event != 0 && is_on(event_at(event)); }

void weft_hook_decide(const struct weft_hook* hook) {
  const uint64_t events[] = {hook->entry, hook->exit, hook->call};
  for (uint32_t n = 0; n < 3; ++n) {
    if (!is_wanted(events[n])) continue;
    if (n != 0) weft_calls_make();
    (void)weft_emit_decide(event_at(events[n]), *event_at(events[n])->enabled);
  }
}

// Nothing is recorded of a program that forbade reading the clock.
static bool is_call_wanted(const struct weft_hook* hook) {
  return is_wanted(hook->call) && !weft_process.no_clock;
}

static uint8_t* put_faults(uint8_t* to, const struct weft_hook* hook,
                           const struct weft_hook_pieces* pieces) {
  if ((hook->flags & WEFT_HOOK_HAS_FAULTS) == 0) return to;
  return weft_hook_put(to, pieces->faults, sizeof(pieces->faults));
}

// `pieces`: NULL if the hook reads no memory. It is a constant where this is called, so that each
// kind of hook has code of its own.
static inline __attribute__((always_inline)) const void* enter(
    const struct weft_hook_registers* registers, struct weft_hook* hook,
    struct weft_hook_pieces* pieces) {
  const bool entry = is_wanted(hook->entry), exit = is_wanted(hook->exit),
             call = is_call_wanted(hook);
  if (!entry && !exit && !call) return NULL;
  uint64_t* slot = weft_hook_slot(registers);
  struct weft_depth* thread = weft_depth_own();
  struct weft_open_call open;
  weft_depth_find(thread, slot, true, &open);
  uint64_t image[WEFT_HOOK_IMAGE_WORDS] = {0};
  uint8_t* const behind = pieces != NULL
                              ? weft_hook_put_arguments(registers, hook, (uint8_t*)image, pieces)
                              : put_numbers(registers, hook, (uint8_t*)image);
  if (entry) {
    weft_hook_put(pieces != NULL ? put_faults(behind, hook, pieces) : behind, open.depth,
                  sizeof(open.depth));
    emit(hook->entry, image, pieces != NULL ? pieces->segments : NULL, hook);
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
    of->argument_bytes = (uint32_t)(behind - (uint8_t*)image);
    __builtin_memcpy(of->arguments, image, sizeof(of->arguments));
  }
  if (pieces != NULL) weft_hook_keep(&of->pieces, pieces);
  const void* stub = weft_call_publish(number, hook, slot, &open);
  weft_depth_set(thread, weft_call_id_of(number, of->turn));
  of->begin = call ? weft_clock_monotonic() : 0;
  return stub;
}

static __attribute__((noinline)) const void* enter_with_pieces(
    const struct weft_hook_registers* registers, struct weft_hook* hook) {
  struct weft_hook_pieces pieces;
  weft_hook_no_pieces(&pieces);
  return enter(registers, hook, &pieces);
}

const void* weft_hook_enter_slowly(const struct weft_hook_registers* registers,
                                   struct weft_hook* hook) {
  if (__builtin_expect((hook->flags & WEFT_HOOK_READS_MEMORY) != 0, 0))
    return enter_with_pieces(registers, hook);
  return enter(registers, hook, NULL);
}

static __attribute__((noinline)) void enter_only_with_pieces(
    const struct weft_hook_registers* registers, const struct weft_hook* hook) {
  uint64_t image[WEFT_HOOK_IMAGE_WORDS] = {0};
  struct weft_hook_pieces pieces;
  weft_hook_no_pieces(&pieces);
  weft_hook_put(
      put_faults(weft_hook_put_arguments(registers, hook, (uint8_t*)image, &pieces), hook, &pieces),
      0, sizeof(uint16_t));
  emit(hook->entry, image, pieces.segments, hook);
}

void weft_hook_enter_only(const struct weft_hook_registers* registers, struct weft_hook* hook) {
  if (!is_wanted(hook->entry)) return;
  if ((hook->flags & WEFT_HOOK_READS_MEMORY) != 0) return enter_only_with_pieces(registers, hook);
  uint64_t image[WEFT_HOOK_IMAGE_WORDS] = {0};
  weft_hook_put(put_numbers(registers, hook, (uint8_t*)image), 0, sizeof(uint16_t));
  emit(hook->entry, image, NULL, hook);
}

static uint8_t* put_number_of_result(const struct weft_hook_registers* registers,
                                     const struct weft_hook* hook, uint8_t* to) {
  if (hook->result.source == WEFT_HOOK_NONE) return to;
  return weft_hook_put(to, weft_hook_value_of(registers, &hook->result), hook->result.size);
}

// Emits the events of the end of a call. `pieces`: as for enter.
static inline __attribute__((always_inline)) void emit_end(
    const struct weft_hook_registers* registers, const struct weft_hook_call* of,
    struct weft_hook_pieces* pieces, enum weft_hook_unwound unwound) {
  const struct weft_hook* hook = of->hook;
  // A call that began before `call` was on has no time.
  const bool call = of->begin != 0 && is_call_wanted(hook);
  const bool exit = is_wanted(hook->exit);
  if (!call && !exit) return;
  const uint64_t duration = call ? weft_clock_monotonic() - of->begin : 0;
  uint64_t results[WEFT_HOOK_IMAGE_WORDS], of_call[WEFT_HOOK_IMAGE_WORDS];
  const uint64_t depth = of->open.depth | (uint64_t)unwound << 16;
  const uint32_t depth_bytes = sizeof(of->open.depth) + 1;
  const uint32_t first = pieces != NULL ? pieces->count : 0;
  uint8_t* behind = pieces != NULL
                        ? weft_hook_put_results(registers, hook, (uint8_t*)results, pieces)
                        : put_number_of_result(registers, hook, (uint8_t*)results);
  if (pieces != NULL) behind = put_faults(behind, hook, pieces);
  if (call) {
    __builtin_memcpy(of_call, of->arguments, sizeof(of->arguments));
    uint8_t* to = (uint8_t*)of_call + of->argument_bytes;
    const uint32_t bytes = (uint32_t)(behind - (uint8_t*)results);
    for (uint32_t i = 0; i < bytes; ++i) to[i] = ((const uint8_t*)results)[i];
    weft_hook_put(weft_hook_put(to + bytes, duration, sizeof(duration)), depth, depth_bytes);
  }
  if (exit) {
    struct weft_segment segments[WEFT_HOOK_MAX_VALUES + 1];
    uint8_t* to = weft_hook_put(behind, depth, depth_bytes);
    const uint32_t bytes = (hook->flags & WEFT_HOOK_EXIT_ARGUMENTS) != 0 ? of->argument_bytes : 0;
    for (uint32_t i = 0; i < bytes; ++i) to[i] = ((const uint8_t*)of->arguments)[i];
    // An exit has its own values first, then the arguments, for its filter.
    for (uint32_t i = 0; pieces != NULL && i < pieces->count; ++i)
      segments[i] = pieces->segments[(i + first) % pieces->count];
    emit(hook->exit, results, pieces != NULL ? segments : NULL, hook);
  }
  if (call) emit(hook->call, of_call, pieces != NULL ? pieces->segments : NULL, hook);
}

static __attribute__((noinline)) void emit_any_end(const struct weft_hook_registers* registers,
                                                   struct weft_hook_call* of,
                                                   enum weft_hook_unwound unwound) {
  if ((of->hook->flags & WEFT_HOOK_READS_MEMORY) != 0) {
    emit_end(registers, of, &of->pieces, unwound);
  } else {
    emit_end(registers, of, NULL, unwound);
  }
}

uint64_t weft_hook_leave_slowly(const struct weft_hook_registers* registers, uint64_t index) {
  const uint32_t number = (uint32_t)index;
  struct weft_hook_call* of = &weft_hook_calls[number];
  const struct weft_open_call open = of->open;
  const uint64_t returns_to = weft_call_returns_to(&open, number);
  emit_any_end(registers, of, WEFT_HOOK_RETURNED);
  weft_depth_set(weft_depth_own(), open.newest);
  weft_call_end(number);
  return returns_to;
}

// --- calls that are unwound ----------------------------------------------------------------------

#define WEFT_UNWIND_CLEANUP 2  // _UA_CLEANUP_PHASE
#define WEFT_UNWIND_FORCED 8   // _UA_FORCE_UNWIND
#define WEFT_UNWIND_GO_ON 8    // _URC_CONTINUE_UNWIND

// Returns the number of the thread's newest call that runs and was not unwound; 0: not known.
static uint32_t newest_call(const struct weft_depth* thread) {
  for (weft_call_id id = thread->newest; id != 0;) {
    const uint32_t number = weft_call_number(id);
    const struct weft_hook_call* call = &weft_hook_calls[number];
    // acquire: pairs with the release that published the call
    const uint64_t turn = __atomic_load_n(&call->turn, __ATOMIC_ACQUIRE);
    if (weft_call_id_of(number, turn) != id) return 0;  // another one's by now
    if (call->unwound != turn && !weft_call_is_lost(number)) return number;
    id = call->open.around;
  }
  return 0;
}

// Words of an unwinder's context that are looked at: libgcc's has 30, LLVM's more.
#define WEFT_CONTEXT_WORDS 24
#define WEFT_LIBGCC_CFA 18  // index of the frame's CFA; the return address follows

static bool has_word(const uint64_t* words, uint64_t wanted) {
  for (uint32_t i = 0; i < WEFT_CONTEXT_WORDS; ++i)
    if (words[i] == wanted) return true;
  return false;
}

// Returns the number of the call in whose stub's frame the unwinder is, if its context has the
// stub's return address and the stack pointer behind it; 0: not found.
static uint32_t call_of_frame(const uint64_t* words) {
  for (uint32_t i = 0; i < WEFT_CONTEXT_WORDS; ++i) {
    const uint32_t number = weft_call_returned_to(words[i]);
    const struct weft_hook_call* call = &weft_hook_calls[number];
    // acquire: pairs with the release that published the call
    if (number != 0 && __atomic_load_n(&call->turn, __ATOMIC_ACQUIRE) % 2 != 0 &&
        has_word(words, (uintptr_t)(call->slot + 1)) && *call->slot == words[i])
      return number;
  }
  return 0;
}

// Does the unwinder tell frames apart by their CFA, which is a stub's own? LLVM's uses the stack
// pointer, and ends the program if a frame inside the one with the handler has the same.
static bool knows_frames_by_cfa(const uint64_t* words, uint32_t number) {
  return words[WEFT_LIBGCC_CFA] == (uintptr_t)(weft_hook_calls[number].slot + 1) &&
         words[WEFT_LIBGCC_CFA + 1] == weft_stub_return(number);
}

static void report_unwound(struct weft_depth* thread, uint32_t number, enum weft_hook_unwound how) {
  static const struct weft_hook_registers nothing;
  struct weft_hook_call* call = &weft_hook_calls[number];
  emit_any_end(&nothing, call, how);
  weft_depth_set(thread, call->open.newest);
}

// Makes a frame return to its caller without a stub: nothing of the calls is left for the unwinder.
// A function that goes on nevertheless (there is no handler) returns to its caller, too.
static void take_from_frame(struct weft_depth* thread, uint32_t number) {
  uint64_t* const slot = weft_hook_calls[number].slot;
  const uint64_t caller = weft_hook_stub_data[number].caller;
  uint32_t next = 0;
  for (uint32_t of = number; of != 0; of = weft_hook_calls[of].open.jumped_from) {
    report_unwound(thread, of, WEFT_HOOK_EXCEPTION);
    weft_call_end_turn(of);
  }
  *slot = caller;
  for (uint32_t of = number; of != 0; of = next) {
    next = weft_hook_calls[of].open.jumped_from;
    weft_call_free(of);
  }
}

// In the phase in which an unwinder acts, the calls stay taken: it still needs the return address,
// which a thread that takes the call would overwrite. They are collected later, as those that
// longjmp left.
int weft_hook_personality(int version, int actions, uint64_t exception_class, void* exception,
                          void* context) {
  const uint64_t* words = context;
  (void)exception_class;
  (void)exception;
  if (version != 1) return WEFT_UNWIND_GO_ON;
  struct weft_depth* thread = weft_depth_own();
  uint32_t number = call_of_frame(words);
  if ((actions & WEFT_UNWIND_CLEANUP) == 0) {
    if (number != 0 && !knows_frames_by_cfa(words, number)) take_from_frame(thread, number);
    return WEFT_UNWIND_GO_ON;
  }
  const enum weft_hook_unwound how =
      (actions & WEFT_UNWIND_FORCED) != 0 ? WEFT_HOOK_THREAD_END : WEFT_HOOK_EXCEPTION;
  if (number == 0) number = newest_call(thread);
  for (; number != 0; number = weft_hook_calls[number].open.jumped_from) {
    struct weft_hook_call* call = &weft_hook_calls[number];
    if (call->turn % 2 == 0 || call->unwound == call->turn) break;
    call->unwound = call->turn;
    report_unwound(thread, number, how);
  }
  return WEFT_UNWIND_GO_ON;
}

#endif
