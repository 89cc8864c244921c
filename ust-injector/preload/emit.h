// SPDX-License-Identifier: Apache-2.0
// Turns a probe's image into records; every enabled event runs this code. Any thread, signal
// handlers, fork and vfork children.
#ifndef WEFT_UST_INJECTOR_PRELOAD_EMIT_H_
#define WEFT_UST_INJECTOR_PRELOAD_EMIT_H_

#include "lib/abi/tracepoint.h"
#include "ust-injector/preload/decide.h"

// Returns the function that records events of this event's shape, which becomes its
// weft_event.emit. Call it after the library's start.
weft_emit_fn weft_emit_for(const struct weft_event* event);

// Decides about an event whose enable word is `word` (decide.h). Events that came while no decision
// could be made are counted as discarded in the channels that want the event. The caller does not
// hold weft_lock.
const struct weft_event_state* weft_emit_decide(struct weft_event* event, uint32_t word);

// Records an event in one channel only (an index of weft_channels), if that channel wants it. The
// arguments are those of weft_event.emit.
void weft_emit_into(uint32_t channel, struct weft_event* event, const void* fixed,
                    const struct weft_segment* segments, const void* ip);

// Counts one event as discarded in each channel that wants it, whatever its filters say.
void weft_emit_discard(struct weft_event* event, enum weft_discard_reason reason);

// This is the member `keep` of struct weft_library.
void* weft_keep(struct weft_event* event, struct weft_kept** kept, uint64_t size);

// Returns whether a channel would record the event, apart from filters. The answer is exact. Takes
// the lock.
bool weft_event_is_on(struct weft_event* event);

#endif  // WEFT_UST_INJECTOR_PRELOAD_EMIT_H_
