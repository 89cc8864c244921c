// SPDX-License-Identifier: Apache-2.0
// Contexts of a channel: made into a plan once (slow path, under the lock), and written into a
// buffer at each event (any thread, signal handlers). Values that can be cached cost no system
// call.
#ifndef WEFT_UST_INJECTOR_PRELOAD_CONTEXTS_H_
#define WEFT_UST_INJECTOR_PRELOAD_CONTEXTS_H_

#include "lib/abi/context.h"
#include "lib/abi/control.h"
#include "lib/event/filter.h"
#include "ust-injector/preload/process.h"

#define WEFT_CONTEXTS_MAX_BYTES 1024u /* of one record; what does not fit is written as absent */

struct weft_context_plan;

// Returns NULL if there is no context, an unknown one, or no memory.
const struct weft_context_plan* weft_contexts_plan(const struct weft_ruleset* rules,
                                                   const struct weft_channel_spec* spec);

// Returns the most bytes that weft_contexts_write may write.
uint32_t weft_contexts_bound(const struct weft_context_plan* plan);

// Returns the bytes that weft_contexts_write writes at each event; 0: not always equally many.
uint32_t weft_contexts_constant_bytes(const struct weft_context_plan* plan);

// Writes the values as lib/abi/context.h says; returns the bytes, at most WEFT_CONTEXTS_MAX_BYTES.
uint32_t weft_contexts_write(const struct weft_context_plan* plan, uint8_t* to, const void* ip);

// The argument of a filter run. Afterwards `kept` goes to weft_release.
struct weft_filter_call {
  const void* ip;  // the event's
  struct weft_kept*
      kept;           // NULL before: copies of texts, whose functions may use one buffer for all
  bool lacks_memory;  // for such a copy: the filter's result is undefined
};

// Filters take contexts from these functions.
extern const struct weft_filter_contexts weft_contexts_for_filters
    __attribute__((visibility("hidden")));

#endif  // WEFT_UST_INJECTOR_PRELOAD_CONTEXTS_H_
