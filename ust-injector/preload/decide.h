// SPDX-License-Identifier: Apache-2.0
// Decides about one event: which channels record it, with which id, and with which filters. The
// slow path decides when the event's enable word has a value that was not decided on yet. A
// decision is immutable and never freed once published, since any thread may be reading it.
#ifndef WEFT_UST_INJECTOR_PRELOAD_DECIDE_H_
#define WEFT_UST_INJECTOR_PRELOAD_DECIDE_H_

#include "lib/abi/tracepoint.h"
#include "lib/event/filter.h"
#include "ust-injector/preload/process.h"

// The ways to record an event. One of these is added to the enable word that was decided on. FAST
// has one target, no filter, no context, no segment, rseq and a clock that a section can read.
#define WEFT_STATE_FAST 0ull
// Like FAST, with contexts that take equally many bytes at each event. They and the fixed part are
// put together on the stack, at most WEFT_STATE_IMAGE_BYTES (signal stacks are small).
#define WEFT_STATE_CONTEXTS (1ull << 33)
#define WEFT_STATE_IMAGE_BYTES 224u
// Like FAST, with at most WEFT_STATE_MAX_SEGMENTS segments, whose sizes differ from event to event.
#define WEFT_STATE_SEGMENTS (1ull << 34)
#define WEFT_STATE_MAX_SEGMENTS 4u
// One target and one filter; all else may be as it will.
#define WEFT_STATE_FILTERED (1ull << 35)
// Everything else.
#define WEFT_STATE_SLOW (1ull << 32)

struct weft_target {
  uint16_t channel;       // index of weft_channels
  uint16_t event;         // id in the ring set
  uint32_t filter_count;  // 0: always; else if any passes
  const struct weft_linked_filter* const* filters;
};

struct weft_event_state {
  uint64_t key;                     // the enable word that was decided on, and one of the above
  struct weft_record_class record;  // not of the last two; with segments only the ring
  const struct weft_event* event;
  uint32_t target_count;
  uint32_t reserved;
  struct weft_target targets[];
};

// A state that agrees with no enable word: the next enabled event decides.
extern const struct weft_event_state weft_undecided __attribute__((visibility("hidden")));

// Publishes and returns the decision, or NULL: none could be made now (lock, memory, or the agent
// is writing); the event is off for this once.
const struct weft_event_state* weft_decide(struct weft_event* event, uint32_t word);

#endif  // WEFT_UST_INJECTOR_PRELOAD_DECIDE_H_
