// SPDX-License-Identifier: Apache-2.0
// From a probe's image to records: what every enabled event runs. Any thread, signal handlers, fork
// and vfork children.
#ifndef WEFT_UST_INJECTOR_PRELOAD_EMIT_H_
#define WEFT_UST_INJECTOR_PRELOAD_EMIT_H_

#include "lib/abi/tracepoint.h"
#include "ust-injector/preload/process.h"

// What records an event of this one's shape: weft_event.emit of registered events. After
// weft_process_ready.
weft_emit_fn weft_emit_for(const struct weft_event* event);

// A state that agrees with no enable word: the next enabled event decides.
extern const struct weft_event_state weft_undecided __attribute__((visibility("hidden")));

// Counts as discarded what came while nothing could be decided on, for those who want the event as
// far as `state` knows. Without weft_lock.
void weft_settle_undecided(struct weft_event* event, const struct weft_event_state* state);

// The same for one channel only (an index of weft_channels).
void weft_emit_into(uint32_t channel, struct weft_event* event, const void* fixed,
                    const struct weft_segment* segments, const void* ip);

// The member of struct weft_library.
void* weft_keep(struct weft_event* event, struct weft_kept** kept, uint64_t size);

// Exact: would the event be recorded (filters apart)? Takes the lock.
bool weft_event_is_on(struct weft_event* event);

#endif  // WEFT_UST_INJECTOR_PRELOAD_EMIT_H_
