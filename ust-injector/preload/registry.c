// SPDX-License-Identifier: Apache-2.0
// See registry.h.
#include "ust-injector/preload/registry.h"

#include "ust-injector/preload/app_probes.h"
#include "ust-injector/preload/emit.h"
#include "ust-injector/preload/pin.h"
#include "ust-injector/preload/program.h"
#include "ust-injector/preload/seccomp.h"
#include "ust-injector/preload/statedump.h"

#define WEFT_BUCKETS 1024u

static struct weft_registry_entry* buckets[WEFT_BUCKETS];
static struct weft_registry_entry* free_entries;
static const uint32_t always_off = 0;

// Events whose probe is called from another object, one per object: found under the lock, pinned after
// it. What does not fit is not pinned.
struct pins {
  uint32_t count;
  const struct weft_object* objects[32];
  const struct weft_event* events[32];
};

static void note_pin(struct pins* pins, const struct weft_registry_entry* e) {
  for (uint32_t i = 0; i < pins->count; ++i) {
    if (pins->objects[i] == e->object) return;
  }
  if (pins->count == 32) return;
  pins->objects[pins->count] = e->object;
  pins->events[pins->count++] = e->event;
}

struct weft_registry_entry* weft_registry_bucket(const char* name) {
  return buckets[weft_name_hash(name) % WEFT_BUCKETS];
}

static struct weft_registry_entry* insert(const struct weft_object* object, const char* name,
                                          struct weft_tracepoint* tracepoint,
                                          struct weft_event* event) {
  struct weft_registry_entry* e = free_entries;
  if (e != NULL) {
    free_entries = e->next;
  } else {
    e = weft_allocate(sizeof(*e));
    if (e == NULL) return NULL;
  }
  struct weft_registry_entry** bucket = &buckets[weft_name_hash(name) % WEFT_BUCKETS];
  e->tracepoint = tracepoint;
  e->event = event;
  e->object = object;
  e->next = *bucket;
  *bucket = e;
  return e;
}

static void erase(const char* name, const void* which) {
  struct weft_registry_entry** at = &buckets[weft_name_hash(name) % WEFT_BUCKETS];
  for (; *at != NULL; at = &(*at)->next) {
    struct weft_registry_entry* e = *at;
    if (e->tracepoint == which || e->event == which) {
      *at = e->next;
      e->next = free_entries;
      free_entries = e;
      return;
    }
  }
}

static const uint32_t* word_of(const char* name) {
  return weft_process_ready() ? weft_process.words + weft_name_hash(name) : &always_off;
}

void weft_registry_choose_call(struct weft_tracepoint* tp) {
  // release: as of `probe`
  __atomic_store_n(&tp->only_probe, tp->app_probes == NULL ? tp->probe : NULL, __ATOMIC_RELEASE);
}

static void join(struct weft_tracepoint* tp, struct weft_event* event) {
  if (!weft_equal(tp->signature, event->signature)) return;
  // release: the event is set up before weft_tracepoint_enabled finds it
  __atomic_store_n(&tp->event, event, __ATOMIC_RELEASE);
  // release: the event is set up before a call site finds its probe
  __atomic_store_n(&tp->probe, event->probe, __ATOMIC_RELEASE);
  weft_registry_choose_call(tp);
}

static void add_event(struct weft_object* object, struct weft_event* event, struct pins* pins) {
  const char* name = weft_event_name(event);
  event->enabled = word_of(name);  // the process is ready then, as weft_emit_for wants it
  event->emit = weft_emit_for(event);
  event->state = (void*)(uintptr_t)&weft_undecided;
  if (event->nowrite_size != 0 || event->nowrite_segments != 0) event->wants |= WEFT_WANT_NOWRITE;
  const struct weft_registry_entry* mine = insert(object, name, NULL, event);
  if (mine == NULL) return;
  for (struct weft_registry_entry* e = weft_registry_bucket(name); e != NULL; e = e->next) {
    if (e->tracepoint == NULL || !weft_equal(e->tracepoint->name, name)) continue;
    join(e->tracepoint, event);
    note_pin(pins, mine);
  }
}

static void add_tracepoint(struct weft_object* object, struct weft_tracepoint* tp,
                           struct pins* pins) {
  if (insert(object, tp->name, tp, NULL) == NULL) return;
  for (struct weft_registry_entry* e = weft_registry_bucket(tp->name); e != NULL; e = e->next) {
    if (e->event != NULL && weft_equal(weft_event_name(e->event), tp->name)) {
      join(tp, e->event);
      if (e->object != object) note_pin(pins, e);
    }
    if (e->tracepoint != NULL && e->tracepoint != tp && weft_equal(e->tracepoint->name, tp->name)) {
      tp->app_probes = e->tracepoint->app_probes;
    }
  }
  weft_registry_choose_call(tp);
  // release: probe and app_probes before the word that leads to them
  __atomic_store_n(&tp->enabled, tp->app_probes != NULL ? &weft_app_probes_on : word_of(tp->name),
                   __ATOMIC_RELEASE);
}

static void remove_event(struct weft_event* event) {
  const char* name = weft_event_name(event);
  erase(name, event);
  for (struct weft_registry_entry* e = weft_registry_bucket(name); e != NULL; e = e->next) {
    if (e->tracepoint != NULL && e->tracepoint->event == event) {
      // relaxed, both: a call that runs ends in the provider's memory; see lib/abi/tracepoint.h
      __atomic_store_n(&e->tracepoint->event, NULL, __ATOMIC_RELAXED);
      __atomic_store_n(&e->tracepoint->probe, NULL, __ATOMIC_RELAXED);
      weft_registry_choose_call(e->tracepoint);
    }
  }
}

__attribute__((visibility("default"))) void weft_object_register(struct weft_object* object) {
  uint64_t mask;
  struct pins pins = {0};
  object->library = &weft_library;
  (void)weft_process_ready();
  if (weft_anchor == NULL || object->abi != WEFT_TRACEPOINT_ABI || object->state != NULL ||
      !weft_lock(&mask)) {
    return;
  }
  object->state = object;
  for (uint32_t i = 0; i < object->event_count; ++i) {
    if (object->events[i] != NULL) add_event(object, object->events[i], &pins);
  }
  for (uint32_t i = 0; i < object->tracepoint_count; ++i) {
    if (object->tracepoints[i] != NULL) add_tracepoint(object, object->tracepoints[i], &pins);
  }
  weft_unlock(mask);
  for (uint32_t i = 0; i < pins.count; ++i) weft_pin_object(pins.events[i]);
  weft_seccomp_try_early();
  weft_statedump_again();
}

__attribute__((visibility("default"))) void weft_object_unregister(struct weft_object* object) {
  uint64_t mask;
  if (object->state != object || !weft_lock(&mask)) return;
  object->state = NULL;
  for (uint32_t i = 0; i < object->tracepoint_count; ++i) {
    if (object->tracepoints[i] != NULL) erase(object->tracepoints[i]->name, object->tracepoints[i]);
  }
  for (uint32_t i = 0; i < object->event_count; ++i) {
    if (object->events[i] != NULL) remove_event(object->events[i]);
  }
  weft_unlock(mask);
}

int weft_registry_each(int (*fn)(void* data, struct weft_registry_entry* entry), void* data) {
  for (uint32_t i = 0; i < WEFT_BUCKETS; ++i) {
    for (struct weft_registry_entry* e = buckets[i]; e != NULL; e = e->next) {
      const int r = fn(data, e);
      if (r != 0) return r;
    }
  }
  return 0;
}

const uint32_t* weft_registry_word(const char* name) { return word_of(name); }
