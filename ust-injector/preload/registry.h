// SPDX-License-Identifier: Apache-2.0
// All tracepoints and events of the objects in this process, joined by name and signature
// (docs/adr/0025). Under weft_lock, except where it says otherwise.
#ifndef WEFT_UST_INJECTOR_PRELOAD_REGISTRY_H_
#define WEFT_UST_INJECTOR_PRELOAD_REGISTRY_H_

#include <stdbool.h>

#include "lib/abi/tracepoint.h"

struct weft_registry_entry {
  struct weft_registry_entry* next;    // in its bucket, or in the list of free ones
  struct weft_tracepoint* tracepoint;  // one of these two
  struct weft_event* event;
  const struct weft_object* object;  // that it is in
  // For a tracepoint: the arguments of the object's call sites. They differ from the tracepoint's
  // if another object defined it. NULL: they are the tracepoint's.
  const char* other_signature;
};

// One of the providers that a tracepoint's call sites may call. Behind the providers follow the
// objects whose call sites have other arguments than the tracepoint, with `event` NULL.
struct weft_provider {
  const struct weft_object* object;
  struct weft_event* event;
  const char* signature;     // its arguments; under weft_lock only
  uint32_t arguments;        // 0: the tracepoint's; otherwise equal where `signature` is
  bool is_described_before;  // an earlier one has the same description and arguments
};

// All of them. Replaced whole, never changed or freed: a call site may be going through it.
struct weft_providers {
  uint32_t count;    // providers
  uint32_t callers;  // objects behind them
  struct weft_provider list[];
};

// Adds an object's tracepoints and events, or removes them. They take the lock themselves; the
// process was started. False: the object is there already, or the lock did not become free.
bool weft_registry_add(struct weft_object* object);
void weft_registry_remove(struct weft_object* object);

// Would a call site of the tracepoint do anything? Takes the lock itself.
bool weft_registry_is_on(const struct weft_tracepoint* tp);

// This is the member tracepoint_iterate of struct weft_library. It takes the lock itself.
int weft_registry_iterate(int (*fn)(void* data, const char* name,
                                    const struct weft_event_desc* desc),
                          void* data);

// This is the member of struct weft_library. May run in any thread and in signal handlers, without
// the lock.
void (*weft_probe_of(const struct weft_tracepoint* tp, const struct weft_object* object,
                     uint32_t turn))(void);

// Returns a tracepoint's providers; NULL: it has at most its `event`. May run in any thread,
// without the lock.
const struct weft_providers* weft_registry_providers(const struct weft_tracepoint* tp);

// The first entry that may have this name; walk on by `next`.
struct weft_registry_entry* weft_registry_bucket(const char* name);

// Returns the enable word of a name in the control area, or a zero word. May run in any thread,
// without the lock.
const uint32_t* weft_registry_word(const char* name);

// Calls `fn` for every entry until it returns non-zero, which is returned.
int weft_registry_each(int (*fn)(void* data, struct weft_registry_entry* entry), void* data);

// After `app_probes` of a tracepoint changed: makes its call sites call them, or only what the
// control area turns on.
void weft_registry_turn_on(struct weft_tracepoint* tp);

static inline const char* weft_event_name(const struct weft_event* event) {
  return (const char*)(event->desc + 1);
}

#endif  // WEFT_UST_INJECTOR_PRELOAD_REGISTRY_H_
