// SPDX-License-Identifier: Apache-2.0
// See emit.h. The fast path is emit_words down to weft_write_words: one compare of the remembered
// decision with the enable word, then the section. emit_segments and emit_with_contexts are as
// short for other shapes; emit_filtered refuses an event as quickly. emit_slowly does all else.
#include "ust-injector/preload/emit.h"

#include "lib/ring/atomic_slot.h"
#include "ust-injector/preload/atomic_write.h"
#include "ust-injector/preload/channel.h"
#include "ust-injector/preload/clock.h"
#include "ust-injector/preload/contexts.h"
#include "ust-injector/preload/cycles.h"
#include "ust-injector/preload/decide.h"
#include "ust-injector/preload/keep.h"
#include "ust-injector/preload/own_rseq.h"
#include "ust-injector/preload/ring_set.h"
#include "ust-injector/preload/thread.h"
#if defined(__x86_64__)
#include "lib/ring/writer_x86_64.h"
#else
#include "lib/ring/writer_aarch64.h"
#endif

#define WEFT_WRITE_TRIES 8
#define WEFT_MAX_PIECES 66 /* contexts, fixed part, segments */
#define WEFT_SMALL_PIECES 8
#define WEFT_SMALL_CONTEXTS 128u
#define WEFT_KEEP_AT_LEAST \
  (4ull << 20) /* bytes of values for one event, whatever its channels' limits */

static inline void* thread_rseq(void) {
  return (void*)(weft_thread_pointer() + (uintptr_t)weft_process.rseq_offset);
}

// The calling thread's rseq area, where its slot's number stands; NULL: it uses the atomic slot.
struct thread_slot {
  void* rseq;
  uint64_t id_offset;
};

static struct thread_slot find_slot(void) {
  if (weft_process.slot_id_offset != 0) {
    return (struct thread_slot){thread_rseq(), weft_process.slot_id_offset};
  }
  return (struct thread_slot){weft_own_rseq(), weft_process.own_id_offset};
}

static void discard(uint32_t channel, enum weft_discard_reason reason) {
  struct weft_anchor_channel* a = &weft_anchor->channels[channel];
  if (a->ring.slots == NULL && !weft_ring_set_make(channel)) {
    // relaxed: a counter
    if (a->refused) return;
    uint64_t none = 0;
    // relaxed: a time; the first one stays
    if (__atomic_load_n(&a->pending_since, __ATOMIC_RELAXED) == 0)
      __atomic_compare_exchange_n(&a->pending_since, &none, weft_clock_of_rings(), false,
                                  __ATOMIC_RELAXED, __ATOMIC_RELAXED);
    // seq_cst: before the look at `slots`; the ring set's maker stores `slots`, then takes
    // `pending`
    __atomic_fetch_add(&a->pending, 1, __ATOMIC_SEQ_CST);
    if (__atomic_load_n(&a->ring.slots, __ATOMIC_SEQ_CST) != NULL)
      weft_ring_set_count_pending(channel);
    return;
  }
  const struct thread_slot self = find_slot();
  if (self.rseq == NULL ||
      weft_count_discard(self.rseq, self.id_offset, &a->ring, reason) == WEFT_WRITE_NO_SLOT) {
    weft_atomic_discard(weft_atomic_slot(&a->ring), reason);
  }
}

static enum weft_write_result write_in_section(struct thread_slot self,
                                               const struct weft_writer_ring* ring,
                                               const struct weft_record_parts* parts) {
  if (weft_process.clock == WEFT_CLOCK_TSC)
    return weft_write_pieces(self.rseq, self.id_offset, ring, parts);
  // A section that calls the vDSO would not be restarted there.
  struct weft_place place;
  const enum weft_write_result looked = weft_look(self.rseq, self.id_offset, ring, &place);
  if (looked != WEFT_WRITE_COMMITTED) return looked;
  place.time = weft_clock_monotonic();
  return weft_write_pieces_at(self.rseq, self.id_offset, ring, parts, &place);
}

// Writes into the ring that all threads share. Memory for a ring may be free only now.
static void write_atomically(uint32_t channel, const struct weft_record_parts* parts) {
  struct weft_anchor_channel* a = &weft_anchor->channels[channel];
  // acquire: the view of the rings that take such records
  uint32_t most = __atomic_load_n(&a->ring.max_record, __ATOMIC_ACQUIRE);
  if (__builtin_expect(most == 0, 0) && weft_ring_set_make(channel)) {
    most = __atomic_load_n(&a->ring.max_record, __ATOMIC_ACQUIRE);  // acquire: as above
  }
  if (__builtin_expect((uint32_t)parts->word0 <= most, 1)) {
    weft_write_atomically(&a->ring, parts);
  } else {
    discard(channel, most == 0 ? WEFT_DISCARD_MEMORY : WEFT_DISCARD_TOO_LARGE);
  }
}

static void write_record(uint32_t channel, const struct weft_record_parts* parts) {
  struct weft_anchor_channel* a = &weft_anchor->channels[channel];
  const struct thread_slot self = find_slot();
  for (int i = 0; i < WEFT_WRITE_TRIES; ++i) {
    enum weft_write_result r = WEFT_WRITE_NO_SLOT;
    if (self.rseq != NULL) r = write_in_section(self, &a->ring, parts);
    if (r == WEFT_WRITE_MOVED) continue;
    if (r == WEFT_WRITE_FULL) {
      r = weft_switch_subbuf(self.rseq, self.id_offset, &a->ring, parts->increment);
      if (r == WEFT_WRITE_COMMITTED) continue;
      if (r == WEFT_WRITE_FULL) {
        discard(channel, WEFT_DISCARD_FULL);
        return;
      }
    }
    if (r != WEFT_WRITE_NO_SLOT) return;
    if (a->ring.slots != NULL) {
      write_atomically(channel, parts);
      return;
    }
    if (!weft_ring_set_make(channel)) {
      discard(channel, WEFT_DISCARD_MEMORY);
      return;
    }
  }
  // Other threads took this one's slot again and again.
  if (a->ring.slots != NULL) {
    write_atomically(channel, parts);
  } else {
    discard(channel, WEFT_DISCARD_CONTENDED);
  }
}

// Why one of the first `count` segments is missing (lib/abi/event.h); WEFT_DISCARD_REASONS: none
// is.
static uint32_t why_missing(const struct weft_segment* segments, uint32_t count) {
  for (uint32_t i = 0; i < count; ++i) {
    if (segments[i].size != WEFT_SEGMENT_IS_MISSING) continue;
    return segments[i].reserved == WEFT_SEGMENT_NO_MEMORY ? WEFT_DISCARD_MEMORY
                                                          : WEFT_DISCARD_TOO_LARGE;
  }
  return WEFT_DISCARD_REASONS;
}

// Does any of the target's filters want the event? If one refused it, perhaps because a value is
// missing, the event counts as discarded: the count may be one too high, never too low.
static bool passes(const struct weft_target* target, const struct weft_event* event,
                   const void* fixed, const struct weft_segment* segments, const void* ip) {
  struct weft_filter_call call = {.ip = ip, .kept = NULL, .lacks_memory = false};
  bool wanted = target->filter_count == 0;
  for (uint32_t i = 0; i < target->filter_count && !wanted; ++i) {
    wanted = weft_filter_run(target->filters[i], fixed, segments, &call);
  }
  if (__builtin_expect(call.kept != NULL, 0)) weft_release(call.kept);
  if (wanted) return true;
  const uint32_t nowrite = event->wants & WEFT_WANT_NOWRITE ? event->nowrite_segments : 0;
  uint32_t reason = why_missing(segments, event->segment_count + nowrite);
  if (__builtin_expect(call.lacks_memory, 0)) reason = WEFT_DISCARD_MEMORY;
  if (reason != WEFT_DISCARD_REASONS) discard(target->channel, reason);
  return false;
}

// Memory in which a record is put together. It is small, as most records and signal stacks are.
struct workspace {
  uint8_t* contexts;
  struct weft_piece* pieces;
  uint32_t piece_count;  // room
};

static inline __attribute__((always_inline)) void record_in(
    struct workspace w, const struct weft_event* event, const struct weft_target* target,
    const void* fixed, const struct weft_segment* segments, const void* ip) {
  const struct weft_context_plan* plan = weft_channels[target->channel].contexts;
  uint64_t size = sizeof(struct weft_record);
  uint32_t n = 0;
  const uint32_t reason = why_missing(segments, event->segment_count);

  if (reason != WEFT_DISCARD_REASONS) {
    discard(target->channel, reason);
    return;
  }
  if (plan != NULL) {
    w.pieces[n].data = w.contexts;
    w.pieces[n].size = weft_contexts_write(plan, w.contexts, ip);
    size += w.pieces[n++].size;
  }
  if (event->fixed_size != 0) {
    w.pieces[n].data = fixed;
    w.pieces[n].size = event->fixed_size;
    size += w.pieces[n++].size;
  }
  for (uint32_t i = 0; i < event->segment_count; ++i) {
    if (segments[i].size == 0) continue;
    if (n == w.piece_count) {
      discard(target->channel, WEFT_DISCARD_TOO_LARGE);
      return;
    }
    w.pieces[n].data = segments[i].data;
    w.pieces[n].size = segments[i].size;
    size += w.pieces[n++].size;
  }
  if (size > weft_channels[target->channel].max_record) {
    discard(target->channel, WEFT_DISCARD_TOO_LARGE);
    return;
  }
  const struct weft_record_parts parts = {
      .word0 = weft_record_word0((uint32_t)size, target->event),
      .increment = weft_record_increment((uint32_t)size),
      .pieces = w.pieces,
      .piece_count = n,
  };
  write_record(target->channel, &parts);
}

static __attribute__((noinline)) void record_small(const struct weft_event* event,
                                                   const struct weft_target* target,
                                                   const void* fixed,
                                                   const struct weft_segment* segments,
                                                   const void* ip) {
  uint8_t contexts[WEFT_SMALL_CONTEXTS];
  struct weft_piece pieces[WEFT_SMALL_PIECES];
  record_in((struct workspace){contexts, pieces, WEFT_SMALL_PIECES}, event, target, fixed, segments,
            ip);
}

static __attribute__((noinline)) void record_large(const struct weft_event* event,
                                                   const struct weft_target* target,
                                                   const void* fixed,
                                                   const struct weft_segment* segments,
                                                   const void* ip) {
  uint8_t contexts[WEFT_CONTEXTS_MAX_BYTES];
  struct weft_piece pieces[WEFT_MAX_PIECES];
  record_in((struct workspace){contexts, pieces, WEFT_MAX_PIECES}, event, target, fixed, segments,
            ip);
}

static void record(const struct weft_event* event, const struct weft_target* target,
                   const void* fixed, const struct weft_segment* segments, const void* ip) {
  const struct weft_context_plan* plan = weft_channels[target->channel].contexts;
  if (event->segment_count + 2 <= WEFT_SMALL_PIECES &&
      (plan == NULL || weft_contexts_bound(plan) <= WEFT_SMALL_CONTEXTS)) {
    record_small(event, target, fixed, segments, ip);
  } else {
    record_large(event, target, fixed, segments, ip);
  }
}

// `undecided` is a count, and above it the mark of the process that counted: a fork child finds its
// parent's count, which the parent reports itself.
static uint64_t undecided_mark(void) { return (uint64_t)weft_generation() << 32; }

static void add_undecided(struct weft_event* event) {
  const uint64_t mine = undecided_mark();
  // relaxed: no other process writes here, and all threads write one mark
  uint64_t before = __atomic_load_n(&event->undecided, __ATOMIC_RELAXED);
  // relaxed: a thread that loses finds its own mark there
  if (before >> 32 != mine >> 32)
    __atomic_compare_exchange_n(&event->undecided, &before, mine, false, __ATOMIC_RELAXED,
                                __ATOMIC_RELAXED);
  // seq_cst: before the look at `state`. A thread that decides stores that, then takes `undecided`
  __atomic_fetch_add(&event->undecided, 1, __ATOMIC_SEQ_CST);
}

// Counts as discarded what came while no decision could be made, for the channels that want the
// event as far as `state` knows.
static void settle_undecided(struct weft_event* event, const struct weft_event_state* state) {
  const uint64_t mine = undecided_mark();
  // seq_cst: after `state` was stored, or seen; see add_undecided
  const uint64_t before = __atomic_exchange_n(&event->undecided, mine, __ATOMIC_SEQ_CST);
  if (before >> 32 != mine >> 32) return;
  for (uint32_t n = 0; n < (uint32_t)before; ++n) {
    for (uint32_t i = 0; i < state->target_count; ++i)
      discard(state->targets[i].channel, WEFT_DISCARD_CONTENDED);
  }
}

// noinline: the callers' instructions do not depend on it.
__attribute__((noinline)) const struct weft_event_state* weft_emit_decide(struct weft_event* event,
                                                                          uint32_t word) {
  const struct weft_event_state* state = weft_decide(event, word);
  if (state != NULL) settle_undecided(event, state);
  return state;
}

// Called when no decision could be made. If the last decision wanted the event, a new one probably
// would. If it had no channels, the next decision tells which channels the event would have been
// for.
static void count_undecided(struct weft_event* event, const struct weft_event_state* before) {
  for (uint32_t i = 0; i < before->target_count; ++i) {
    const uint32_t channel = before->targets[i].channel;
    // A filter's answer is not known: rather one too many.
    if (weft_anchor->channels[channel].ring.slots != NULL) discard(channel, WEFT_DISCARD_CONTENDED);
  }
  if (before->target_count != 0) return;
  add_undecided(event);
  // seq_cst: after the addition
  const struct weft_event_state* now =
      __atomic_load_n((const struct weft_event_state* const*)&event->state, __ATOMIC_SEQ_CST);
  if (now != before) settle_undecided(event, now);
}

// acquire: pairs with the release that published the state
static const struct weft_event_state* latest_state(const struct weft_event* event) {
  return __atomic_load_n((const struct weft_event_state* const*)&event->state, __ATOMIC_ACQUIRE);
}

static __attribute__((noinline)) void emit_slowly(struct weft_event* event, const void* fixed,
                                                  const struct weft_segment* segments,
                                                  const void* ip) {
  // acquire: the rules of this word are read after it (P1 before P2)
  const uint32_t word = __atomic_load_n(event->enabled, __ATOMIC_ACQUIRE);
  if (word == 0 || weft_process.no_clock) return;
  const struct weft_event_state* state = latest_state(event);
  if ((uint32_t)state->key != word) {
    const struct weft_event_state* before = state;
    state = weft_emit_decide(event, word);
    if (state == NULL) {
      state = latest_state(event);  // the lock's owner may have decided
      if ((uint32_t)state->key != word) return count_undecided(event, before);
    }
  }
  for (uint32_t i = 0; i < state->target_count; ++i) {
    const struct weft_target* target = &state->targets[i];
    if (passes(target, event, fixed, segments, ip)) record(event, target, fixed, segments, ip);
  }
}

// consume in effect (address dependency): the state is complete before it is published
static inline const struct weft_event_state* published_state(const struct weft_event* event) {
  return __atomic_load_n((const struct weft_event_state* const*)&event->state, __ATOMIC_RELAXED);
}

// relaxed: it is only compared with what was decided for it
static inline uint64_t enable_word(const struct weft_event* event) {
  return __atomic_load_n(event->enabled, __ATOMIC_RELAXED);
}

// `id_offset`: the process's; `words`: those of the payload, 0: any number. Both are constants.
// Returns false if it wrote nothing.
static inline __attribute__((always_inline)) bool write_words(intptr_t rseq, uint32_t id_offset,
                                                              const struct weft_event_state* state,
                                                              const void* payload, uint32_t words) {
  return __builtin_expect(weft_write_words(rseq, id_offset, &state->record, payload, words), 1);
}

// WEFT_STATE_CONTEXTS. `state` is that of the event's enable word.
static __attribute__((noinline)) void emit_with_contexts(struct weft_event* event,
                                                         const struct weft_event_state* state,
                                                         const void* fixed,
                                                         const struct weft_segment* segments,
                                                         const void* ip) {
  uint8_t image[WEFT_STATE_IMAGE_BYTES + 8] __attribute__((aligned(8)));
  uint8_t* to =
      image + weft_contexts_write(weft_channels[state->targets[0].channel].contexts, image, ip);
  // The fixed part is readable up to a multiple of 8 bytes.
  for (uint32_t i = 0; i < event->fixed_size; i += 8) {
    __builtin_memcpy(to + i, (const uint8_t*)fixed + i, 8);
  }
  const intptr_t rseq = weft_process.rseq_offset;
  const bool written = weft_process.slot_id_offset == WEFT_RSEQ_MM_CID_OFFSET
                           ? write_words(rseq, WEFT_RSEQ_MM_CID_OFFSET, state, image, 0)
                           : write_words(rseq, WEFT_RSEQ_CPU_ID_OFFSET, state, image, 0);
  if (!written) emit_slowly(event, fixed, segments, ip);
}

// WEFT_STATE_FILTERED. `state` is that of the event's enable word.
static __attribute__((noinline)) void emit_filtered(const struct weft_event_state* state,
                                                    const void* fixed,
                                                    const struct weft_segment* segments,
                                                    const void* ip) {
  const struct weft_target* target = &state->targets[0];
  if (passes(target, state->event, fixed, segments, ip) && !weft_process.no_clock) {
    record(state->event, target, fixed, segments, ip);
  }
}

// `state` is that of the event's enable word, or does not agree with it.
static __attribute__((noinline)) void emit_otherwise(struct weft_event* event, const void* fixed,
                                                     const struct weft_segment* segments,
                                                     const void* ip) {
  const struct weft_event_state* state = published_state(event);
  const uint64_t way = state->key ^ enable_word(event);
  if (way == WEFT_STATE_FILTERED) {
    emit_filtered(state, fixed, segments, ip);
  } else if (way == WEFT_STATE_CONTEXTS) {
    emit_with_contexts(event, state, fixed, segments, ip);
  } else {
    emit_slowly(event, fixed, segments, ip);
  }
}

// WEFT_STATE_FAST, and its section left without a record. Needs nothing but what that kept in
// registers.
static __attribute__((noinline)) void emit_again(const struct weft_event_state* state,
                                                 const void* fixed) {
  if (!weft_process.no_clock) record_small(state->event, &state->targets[0], fixed, NULL, NULL);
}

// `id_offset` and `words` (of the fixed part): as in write_words.
static inline __attribute__((always_inline)) void emit_words(struct weft_event* event,
                                                             const void* fixed,
                                                             const struct weft_segment* segments,
                                                             const void* ip, uint32_t id_offset,
                                                             uint32_t words) {
  // The longest chain of loads before the clock is read begins here: it is loaded before the
  // branch.
  intptr_t rseq = weft_process.rseq_offset;
  __asm__ volatile("" : "+r"(rseq));
  const struct weft_event_state* state = published_state(event);
  if (__builtin_expect(state->key != (enable_word(event) | WEFT_STATE_FAST), 0)) {
    emit_otherwise(event, fixed, segments, ip);
  } else if (!write_words(rseq, id_offset, state, fixed, words)) {
    emit_again(state, fixed);
  }
}

#define DEFINE_EMIT(id, words)                                                           \
  static void emit_##id##_##words(struct weft_event* event, const void* fixed,           \
                                  const struct weft_segment* segments, const void* ip) { \
    emit_words(event, fixed, segments, ip, WEFT_RSEQ_##id##_OFFSET, words);              \
  }
#define DEFINE_EMITS(id)                                                                 \
  DEFINE_EMIT(id, 0)                                                                     \
  DEFINE_EMIT(id, 1)                                                                     \
  DEFINE_EMIT(id, 2)                                                                     \
  DEFINE_EMIT(id, 3)                                                                     \
  DEFINE_EMIT(id, 4)                                                                     \
  static const weft_emit_fn emits_##id[] = {emit_##id##_0, emit_##id##_1, emit_##id##_2, \
                                            emit_##id##_3, emit_##id##_4};
DEFINE_EMITS(MM_CID)
DEFINE_EMITS(CPU_ID)

static void emit_segments(struct weft_event* event, const void* fixed,
                          const struct weft_segment* segments, const void* ip) {
  const struct weft_event_state* state = published_state(event);
  if (__builtin_expect(state->key != (enable_word(event) | WEFT_STATE_SEGMENTS), 0)) {
    emit_otherwise(event, fixed, segments, ip);
    return;
  }
  struct weft_piece pieces[1 + WEFT_STATE_MAX_SEGMENTS];
  uint64_t size = sizeof(struct weft_record) + event->fixed_size;
  pieces[0] = (struct weft_piece){fixed, event->fixed_size};
  for (uint32_t i = 0; i < event->segment_count; ++i) {
    pieces[1 + i] = (struct weft_piece){segments[i].data, segments[i].size};
    size += segments[i].size;
  }
  if (__builtin_expect(size <= weft_channels[state->targets[0].channel].max_record, 1)) {
    const struct weft_record_parts parts = {
        .word0 = weft_record_word0((uint32_t)size, state->targets[0].event),
        .increment = weft_record_increment((uint32_t)size),
        .pieces = pieces,
        .piece_count = 1 + event->segment_count,
    };
    if (__builtin_expect(weft_write_pieces(thread_rseq(), weft_process.slot_id_offset,
                                           state->record.ring, &parts) == WEFT_WRITE_COMMITTED,
                         1)) {
      return;
    }
  }
  emit_slowly(event, fixed, segments, ip);
}

weft_emit_fn weft_emit_for(const struct weft_event* event) {
  if (event->segment_count != 0) return emit_segments;
  const uint32_t words = (event->fixed_size + 7) / 8;
  const weft_emit_fn* emits =
      weft_process.slot_id_offset == WEFT_RSEQ_MM_CID_OFFSET ? emits_MM_CID : emits_CPU_ID;
  return emits[words <= 4 ? words : 0];
}

// The decision in force; NULL: the event is off.
static const struct weft_event_state* current_state(struct weft_event* event) {
  const uint32_t word = __atomic_load_n(event->enabled, __ATOMIC_ACQUIRE);  // acquire: as above
  if (word == 0) return NULL;
  const struct weft_event_state* state = latest_state(event);
  return (uint32_t)state->key == word ? state : weft_emit_decide(event, word);
}

void weft_emit_into(uint32_t channel, struct weft_event* event, const void* fixed,
                    const struct weft_segment* segments, const void* ip) {
  const struct weft_event_state* state = weft_process.no_clock ? NULL : current_state(event);
  for (uint32_t i = 0; state != NULL && i < state->target_count; ++i) {
    const struct weft_target* target = &state->targets[i];
    if (target->channel == channel && passes(target, event, fixed, segments, ip)) {
      record(event, target, fixed, segments, ip);
    }
  }
}

void weft_emit_discard(struct weft_event* event, enum weft_discard_reason reason) {
  const struct weft_event_state* state = weft_process.no_clock ? NULL : current_state(event);
  for (uint32_t i = 0; state != NULL && i < state->target_count; ++i)
    discard(state->targets[i].channel, reason);
}

// Returns the bytes of the largest record that a channel which wants the event takes; 0: no channel
// is known to want it.
static uint64_t largest_record(struct weft_event* event) {
  const struct weft_event_state* state = weft_process.no_clock ? NULL : current_state(event);
  uint64_t limit = 0;
  for (uint32_t i = 0; state != NULL && i < state->target_count; ++i) {
    const uint64_t bytes = weft_channels[state->targets[i].channel].max_record;
    if (bytes > limit) limit = bytes;
  }
  return limit;
}

void* weft_keep(struct weft_event* event, struct weft_kept** kept, uint64_t size) {
  const uint64_t bytes = weft_kept_bytes(*kept) + size;
  // A length that is no length (of an uninitialised variable, say) must not be read.
  if (bytes > WEFT_KEEP_AT_LEAST && bytes > largest_record(event)) {
    return (void*)(uintptr_t)WEFT_SEGMENT_TOO_LARGE;
  }
  void* lent = weft_keep_bytes(kept, size, !weft_ids_are_shared());
  return lent != NULL ? lent : (void*)(uintptr_t)WEFT_SEGMENT_NO_MEMORY;
}

bool weft_event_is_on(struct weft_event* event) {
  const struct weft_event_state* state = current_state(event);
  return state != NULL && state->target_count != 0;
}
