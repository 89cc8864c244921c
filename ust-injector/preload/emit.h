// SPDX-License-Identifier: Apache-2.0
// From a probe's image to records: what every enabled event runs. Any thread, signal handlers, fork
// and vfork children.
#ifndef WEFT_UST_INJECTOR_PRELOAD_EMIT_H_
#define WEFT_UST_INJECTOR_PRELOAD_EMIT_H_

#include "lib/abi/tracepoint.h"
#include "ust-injector/preload/decide.h"

// The function that records events of this one's shape: weft_event.emit of registered events. The
// process was started.
weft_emit_fn weft_emit_for(const struct weft_event* event);

// Decides about an event whose enable word is `word` (decide.h), and counts as discarded, for the
// channels that want the event, what came while no decision could be made. Without weft_lock.
const struct weft_event_state* weft_emit_decide(struct weft_event* event, uint32_t word);

// Records an event in one channel only (an index of weft_channels), if that wants it. The arguments
// are those of weft_event.emit.
void weft_emit_into(uint32_t channel, struct weft_event* event, const void* fixed,
                    const struct weft_segment* segments, const void* ip);

// The member of struct weft_library.
void* weft_keep(struct weft_event* event, struct weft_kept** kept, uint64_t size);

// Would the event be recorded, whatever its filters say? The answer is exact. Takes the lock.
bool weft_event_is_on(struct weft_event* event);

#endif  // WEFT_UST_INJECTOR_PRELOAD_EMIT_H_
