// SPDX-License-Identifier: Apache-2.0
// See hook_fast.h. This file is compiled without vector registers (-mgeneral-regs-only), and calls
// nothing that uses them, but by weft_hook_call_slowly.
#include "ust-injector/preload/hook_fast.h"

#if defined(__x86_64__)

#include "ust-injector/preload/decide.h"
#include "ust-injector/preload/hook_calls.h"
#include "ust-injector/preload/hook_depth.h"
#include "ust-injector/preload/hook_slow.h"

static inline struct weft_event* event_at(uint64_t address) {
  return (struct weft_event*)(uintptr_t)address;
}

// False: the event was never recorded (hook_slow.c prepares it).
static inline bool is_prepared(const struct weft_event* event) {
  // acquire: pairs with the release of `emit`, which is stored last
  return event == NULL || __atomic_load_n(&event->emit, __ATOMIC_ACQUIRE) != NULL;
}

// Returns the decision by which a prepared event is recorded; NULL: the event is off; OTHERWISE: it
// must be decided, or has a filter or a context.
#define OTHERWISE (&weft_undecided)
static inline const struct weft_event_state* state_of(const struct weft_event* event) {
  if (event == NULL) return NULL;
  // relaxed: it is only compared with what was decided for it
  const uint64_t word = __atomic_load_n(event->enabled, __ATOMIC_RELAXED);
  if (word == 0) return NULL;
  // consume in effect (address dependency): the state is complete before it is published
  const struct weft_event_state* state =
      __atomic_load_n((const struct weft_event_state* const*)&event->state, __ATOMIC_RELAXED);
  return state->key == (word | WEFT_STATE_FAST) ? state : OTHERWISE;
}

static inline bool write_words(const struct weft_event_state* state, const uint64_t* image) {
  const intptr_t rseq = weft_process.rseq_offset;
  return __builtin_expect(weft_process.slot_id_offset == WEFT_RSEQ_MM_CID_OFFSET, 1)
             ? weft_write_words(rseq, WEFT_RSEQ_MM_CID_OFFSET, &state->record, image, 0)
             : weft_write_words(rseq, WEFT_RSEQ_CPU_ID_OFFSET, &state->record, image, 0);
}

static inline void record(const struct weft_event_state* state, struct weft_event* event,
                          const uint64_t* image, const struct weft_hook* hook) {
  if (__builtin_expect(state == OTHERWISE || !write_words(state, image), 0))
    weft_hook_call_slowly((weft_hook_slow_fn*)event->emit, event, image, NULL,
                          (const void*)(uintptr_t)hook->address);
}

static inline uint32_t take_quickly(void) {
  const intptr_t rseq = weft_call_rseq();
  const uint32_t number = rseq != 0 ? weft_call_take_cached(rseq) : 0;
  return __builtin_expect(number != 0, 1) ? number : weft_call_take_listed();
}

static inline void record_entry(const struct weft_event_state* state,
                                const struct weft_hook_registers* registers,
                                const struct weft_hook* hook, uint16_t depth) {
  uint64_t image[WEFT_HOOK_IMAGE_WORDS];
  uint8_t* to = (uint8_t*)image;
  for (uint32_t i = 0; i < hook->value_count && i < WEFT_HOOK_MAX_VALUES; ++i) {
    const struct weft_hook_value* v = &hook->values[i];
    to = weft_hook_put(to, weft_hook_value_of(registers, v), v->size);
  }
  weft_hook_put(to, depth, sizeof(depth));
  record(state, event_at(hook->entry), image, hook);
}

static inline void record_exit(const struct weft_event_state* state,
                               const struct weft_hook_registers* registers,
                               const struct weft_hook* hook, uint16_t depth) {
  uint64_t image[2];
  uint8_t* to = (uint8_t*)image;
  if (hook->result.source != WEFT_HOOK_NONE)
    to = weft_hook_put(to, weft_hook_value_of(registers, &hook->result), hook->result.size);
  weft_hook_put(to, depth, sizeof(depth));
  record(state, event_at(hook->exit), image, hook);
}

const void* weft_hook_enter(const struct weft_hook_registers* registers, struct weft_hook* hook) {
  uint64_t* slot = weft_hook_slot(registers);
  struct weft_depth* thread = weft_depth_known();
  struct weft_open_call open;
  uint32_t number = 0;
  if (__builtin_expect(hook->flags != 0 || hook->call != 0 || !is_prepared(event_at(hook->entry)) ||
                           !is_prepared(event_at(hook->exit)) || thread == NULL ||
                           !weft_depth_find(thread, slot, false, &open),
                       0))
    goto slowly;
  const struct weft_event_state* entry = state_of(event_at(hook->entry));
  const struct weft_event_state* exit = state_of(event_at(hook->exit));
  if (exit != NULL && (number = take_quickly()) == 0) goto slowly;
  if (entry != NULL) record_entry(entry, registers, hook, open.depth);
  if (number == 0) return NULL;
  const void* stub = weft_call_publish(number, hook, slot, &open);
  weft_depth_set(thread, weft_call_id_of(number, weft_hook_calls[number].turn));
  return stub;
slowly:
  return (const void*)(uintptr_t)weft_hook_call_slowly((weft_hook_slow_fn*)weft_hook_enter_slowly,
                                                       registers, hook, NULL, NULL);
}

uint64_t weft_hook_leave(const struct weft_hook_registers* registers, uint64_t index) {
  const uint32_t number = (uint32_t)index;
  const struct weft_hook_call* call = &weft_hook_calls[number];
  const struct weft_hook* hook = call->hook;
  struct weft_depth* thread = weft_depth_known();
  if (__builtin_expect(hook->flags != 0 || hook->call != 0 || !is_prepared(event_at(hook->exit)) ||
                           thread == NULL,
                       0))
    return weft_hook_call_slowly((weft_hook_slow_fn*)weft_hook_leave_slowly, registers,
                                 (const void*)index, NULL, NULL);
  const struct weft_event_state* exit = state_of(event_at(hook->exit));
  const struct weft_open_call open = call->open;
  const uint64_t returns_to = weft_call_returns_to(&open, number);
  if (exit != NULL) record_exit(exit, registers, hook, open.depth);
  weft_depth_set(thread, open.newest);
  weft_call_end(number);
  return returns_to;
}

#endif
