// SPDX-License-Identifier: Apache-2.0
// See registry.h.
#include "ust-injector/preload/registry.h"

#include <errno.h>

#include "ust-injector/preload/decide.h"
#include "ust-injector/preload/emit.h"
#include "ust-injector/preload/lock.h"
#include "ust-injector/preload/memory.h"
#include "ust-injector/preload/pin.h"
#include "ust-injector/preload/process.h"

#define WEFT_BUCKETS 1024u

static struct weft_registry_entry* buckets[WEFT_BUCKETS];
static struct weft_registry_entry* free_entries;
static const uint32_t always_off = 0;
// The enable word of a tracepoint with application probes.
static const uint32_t always_on = 1;

// Events whose probe is called from another object, one per object. They are found under the lock
// and pinned after it is released. Events beyond the arrays' end are not pinned.
struct pins {
  uint32_t count;
  const struct weft_object* objects[32];
  const struct weft_event* events[32];
};

static void note_pin(struct pins* pins, const struct weft_provider* provider) {
  for (uint32_t i = 0; i < pins->count; ++i) {
    if (pins->objects[i] == provider->object) return;
  }
  if (pins->count == 32) return;
  pins->objects[pins->count] = provider->object;
  pins->events[pins->count++] = provider->event;
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
  e->other_signature = NULL;
  e->next = *bucket;
  *bucket = e;
  return e;
}

// Removes an object's entry of a tracepoint: each object that lists the tracepoint has one.
static void erase(const struct weft_object* object, const char* name, const void* which) {
  struct weft_registry_entry** at = &buckets[weft_name_hash(name) % WEFT_BUCKETS];
  for (; *at != NULL; at = &(*at)->next) {
    struct weft_registry_entry* e = *at;
    if (e->object == object && (e->tracepoint == which || e->event == which)) {
      *at = e->next;
      e->next = free_entries;
      free_entries = e;
      return;
    }
  }
}

const uint32_t* weft_registry_word(const char* name) {
  return weft_process_is_ready() ? weft_process.words + weft_name_hash(name) : &always_off;
}

static bool has_providers(const struct weft_tracepoint* tp) {
  return tp->size >= __builtin_offsetof(struct weft_tracepoint, providers) + sizeof(void*);
}

const struct weft_providers* weft_registry_providers(const struct weft_tracepoint* tp) {
  // acquire: the list is complete before it is found
  return has_providers(tp) ? __atomic_load_n(&tp->providers, __ATOMIC_ACQUIRE) : NULL;
}

// Chooses what the call sites call, after `probe`, `providers` or `app_probes` changed.
static void choose_call(struct weft_tracepoint* tp) {
  const bool is_all = tp->app_probes == NULL && weft_registry_providers(tp) == NULL;
  // release: as of `probe`
  __atomic_store_n(&tp->only_probe, is_all ? tp->probe : NULL, __ATOMIC_RELEASE);
}

void (*weft_probe_of(const struct weft_tracepoint* tp, const struct weft_object* object,
                     uint32_t turn))(void) {
  const struct weft_providers* all = weft_registry_providers(tp);
  uint32_t arguments = 0, n = 0;
  if (all == NULL) return turn == 0 ? tp->probe : NULL;
  for (uint32_t i = 0; i < all->count + all->callers; ++i) {
    if (all->list[i].object != object) continue;
    if (all->list[i].event != NULL) return turn == 0 ? all->list[i].event->probe : NULL;
    arguments = all->list[i].arguments;
  }
  for (uint32_t i = 0; i < all->count; ++i) {
    if (all->list[i].is_described_before || all->list[i].arguments != arguments) continue;
    if (n++ == turn) return all->list[i].event->probe;
  }
  return NULL;
}

// --- which providers a tracepoint has (docs/adr/0025) --------------------------------------------

// Does the object list the tracepoint? `tp` NULL: any tracepoint of the name.
static bool lists(const struct weft_object* object, const struct weft_tracepoint* tp,
                  const char* name) {
  for (struct weft_registry_entry* e = weft_registry_bucket(name); e != NULL; e = e->next) {
    if (e->object == object && e->tracepoint != NULL &&
        (tp != NULL ? e->tracepoint == tp : weft_equal(e->tracepoint->name, name))) {
      return true;
    }
  }
  return false;
}

// Does another object than this one list the tracepoint?
static bool is_called_elsewhere(const struct weft_tracepoint* tp,
                                const struct weft_object* object) {
  for (struct weft_registry_entry* e = weft_registry_bucket(tp->name); e != NULL; e = e->next) {
    if (e->tracepoint == tp && e->object != object) return true;
  }
  return false;
}

// How closely an event belongs to a tracepoint of its name.
enum nearness {
  OWN,       // its object lists the tracepoint
  PROVIDER,  // its object lists none of the name, as a provider's library does
  FOREIGN,   // its object has a tracepoint of its own
  STRANGE,   // it has other arguments
};

static enum nearness nearness(const struct weft_tracepoint* tp,
                              const struct weft_registry_entry* entry) {
  if (!weft_equal(entry->event->signature, tp->signature)) return STRANGE;
  if (lists(entry->object, tp, tp->name)) return OWN;
  return lists(entry->object, NULL, tp->name) ? FOREIGN : PROVIDER;
}

static bool has_same_description(const struct weft_event* a, const struct weft_event* b) {
  return a->desc->size == b->desc->size && memcmp(a->desc, b->desc, a->desc->size) == 0;
}

// Writes to `out` the events of that nearness to the tracepoint, the oldest first; returns how
// many. `out` may be NULL.
static uint32_t gather(const struct weft_tracepoint* tp, enum nearness wanted,
                       struct weft_provider* out) {
  uint32_t count = 0, n = 0;
  for (int pass = 0; pass < 2; ++pass) {
    for (struct weft_registry_entry* e = weft_registry_bucket(tp->name); e != NULL; e = e->next) {
      if (e->event == NULL || !weft_equal(weft_event_name(e->event), tp->name) ||
          nearness(tp, e) != wanted) {
        continue;
      }
      if (pass == 0) {
        ++count;
      } else {
        // The newest entry comes first in the bucket.
        out[count - ++n] = (struct weft_provider){
            .object = e->object, .event = e->event, .signature = e->event->signature};
      }
    }
    if (out == NULL) break;
  }
  return count;
}

// Writes to `out` the objects whose call sites have other arguments than the tracepoint. Returns
// how many they are. `out` may be NULL.
static uint32_t gather_callers(const struct weft_tracepoint* tp, struct weft_provider* out) {
  uint32_t n = 0;
  for (struct weft_registry_entry* e = weft_registry_bucket(tp->name); e != NULL; e = e->next) {
    if (e->tracepoint != tp || e->other_signature == NULL) continue;
    if (out != NULL) {
      out[n] = (struct weft_provider){.object = e->object, .signature = e->other_signature};
    }
    ++n;
  }
  return n;
}

// The providers of a tracepoint, while they are being collected.
struct finding {
  uint32_t own, libraries, foreign, strange, callers;  // how many
  uint32_t fitting;                                    // the first three
  struct weft_providers* all;                          // NULL: there is one at most, or no memory
  struct weft_provider first;
};

static void fill(const struct weft_tracepoint* tp, const struct finding* f,
                 struct weft_provider* list) {
  gather(tp, OWN, list);
  gather(tp, PROVIDER, list + f->own);
  if (f->foreign != 0) gather(tp, FOREIGN, list + f->own + f->libraries);
  if (f->strange != 0) gather(tp, STRANGE, list + f->fitting);
  if (f->callers != 0) gather_callers(tp, list + f->fitting + f->strange);
  for (uint32_t i = 0; i < f->fitting + f->strange + f->callers; ++i) {
    if (i >= f->fitting) list[i].arguments = i + 1;
    for (uint32_t j = 0; j < i; ++j) {
      if (!weft_equal(list[i].signature, list[j].signature)) continue;
      list[i].arguments = list[j].arguments;
      if (list[i].event != NULL && has_same_description(list[i].event, list[j].event)) {
        list[i].is_described_before = true;
      }
    }
  }
}

static bool is_same_list(const struct weft_providers* a, const struct weft_providers* b) {
  if (a == NULL || a->count != b->count || a->callers != b->callers) return false;
  for (uint32_t i = 0; i < a->count + a->callers; ++i) {
    if (a->list[i].object != b->list[i].object || a->list[i].event != b->list[i].event)
      return false;
  }
  return true;
}

// A list is never freed. If nothing changed, the old one stays, and the new one is kept for the
// next change.
static struct weft_providers* make_list(const struct weft_tracepoint* tp, const struct finding* f) {
  static struct weft_providers* spare;
  static uint32_t spare_room;
  const uint32_t room = f->fitting + f->strange + f->callers;
  struct weft_providers* old = (struct weft_providers*)weft_registry_providers(tp);
  if (spare == NULL || spare_room < room) {
    spare_room = 0;
    spare = weft_allocate(sizeof(*spare) + room * sizeof(spare->list[0]));
    if (spare == NULL) return NULL;
    spare_room = room;
  }
  spare->count = f->fitting + f->strange;
  spare->callers = f->callers;
  fill(tp, f, spare->list);
  if (is_same_list(old, spare)) return old;
  struct weft_providers* made = spare;
  spare = NULL;
  return made;
}

// If the objects that list the tracepoint have no provider of it, any provider counts. Providers
// with other arguments count only if there are call sites with these arguments.
static void find_providers(const struct weft_tracepoint* tp, struct finding* f) {
  f->own = gather(tp, OWN, NULL);
  f->libraries = gather(tp, PROVIDER, NULL);
  f->foreign = f->own != 0 ? 0 : gather(tp, FOREIGN, NULL);
  f->callers = gather_callers(tp, NULL);
  f->strange = f->callers != 0 ? gather(tp, STRANGE, NULL) : 0;
  f->fitting = f->own + f->libraries + f->foreign;
  if (f->fitting > 1 || f->callers != 0) f->all = make_list(tp, f);
  if (f->fitting == 1 && f->callers == 0) fill(tp, f, &f->first);
  if (f->all != NULL && f->fitting != 0) f->first = f->all->list[0];
}

// Gives the tracepoint the providers that it now has. `pins` may be NULL.
static void join(struct weft_tracepoint* tp, struct pins* pins) {
  struct finding f = {0};
  find_providers(tp, &f);
  const struct weft_provider* list = f.all != NULL ? f.all->list : &f.first;
  const uint32_t listed = f.all != NULL ? f.all->count : f.first.event != NULL;
  for (uint32_t i = 0; pins != NULL && i < listed; ++i) {
    if (is_called_elsewhere(tp, list[i].object)) note_pin(pins, &list[i]);
  }
  const struct weft_event* event = f.first.event;
  // release, each: the events are set up and the list is complete before they are found
  __atomic_store_n(&tp->event, f.first.event, __ATOMIC_RELEASE);
  __atomic_store_n(&tp->probe, event != NULL ? event->probe : NULL, __ATOMIC_RELEASE);
  if (has_providers(tp)) __atomic_store_n(&tp->providers, f.all, __ATOMIC_RELEASE);
  choose_call(tp);
}

// Joins all tracepoints of the name.
static void join_name(const char* name, struct pins* pins) {
  for (struct weft_registry_entry* e = weft_registry_bucket(name); e != NULL; e = e->next) {
    bool is_joined = false;  // objects that share one tracepoint all list it
    if (e->tracepoint == NULL || !weft_equal(e->tracepoint->name, name)) continue;
    for (struct weft_registry_entry* f = weft_registry_bucket(name); f != e; f = f->next) {
      is_joined = is_joined || f->tracepoint == e->tracepoint;
    }
    if (!is_joined) join(e->tracepoint, pins);
  }
}

// --- objects -------------------------------------------------------------------------------------

static void add_event(struct weft_object* object, struct weft_event* event) {
  const char* name = weft_event_name(event);
  event->enabled =
      weft_registry_word(name);  // the process is ready then, as weft_emit_for wants it
  event->emit = weft_emit_for(event);
  event->state = (void*)(uintptr_t)&weft_undecided;
  if (event->nowrite_size != 0 || event->nowrite_segments != 0) event->wants |= WEFT_WANT_NOWRITE;
  (void)insert(object, name, NULL, event);
}

// Returns the arguments that the object's call sites pass to the tracepoint: those of the object's
// own provider, or those in its definition of the tracepoint. The search for the definition begins
// at `*at`, behind the one found before, because the object's lists are in the same order.
static const char* signature_at_calls(const struct weft_object* object,
                                      const struct weft_tracepoint* tp, size_t* at) {
  for (struct weft_registry_entry* e = weft_registry_bucket(tp->name); e != NULL; e = e->next) {
    if (e->object == object && e->event != NULL &&
        weft_equal(weft_event_name(e->event), tp->name)) {
      return e->event->signature;
    }
  }
  const struct weft_arguments_list* list = object->arguments;
  const size_t count = list != NULL ? (size_t)(list->end - list->begin) : 0;
  for (size_t i = 0; i < count; ++i) {
    const size_t here = (*at + i) % count;
    if (list->begin[here].tracepoint != tp) continue;
    *at = here + 1;
    return list->begin[here].signature;
  }
  return tp->signature;
}

// Adds a tracepoint, with the application's probes of another tracepoint that has its name and
// arguments.
static void add_tracepoint(struct weft_object* object, struct weft_tracepoint* tp, size_t* at) {
  for (struct weft_registry_entry* e = weft_registry_bucket(tp->name); e != NULL; e = e->next) {
    if (e->tracepoint != NULL && e->tracepoint != tp && weft_equal(e->tracepoint->name, tp->name) &&
        weft_equal(e->tracepoint->signature, tp->signature)) {
      tp->app_probes = e->tracepoint->app_probes;
    }
  }
  struct weft_registry_entry* entry = insert(object, tp->name, tp, NULL);
  const char* signature = signature_at_calls(object, tp, at);
  if (entry != NULL && !weft_equal(signature, tp->signature)) entry->other_signature = signature;
}

void weft_registry_turn_on(struct weft_tracepoint* tp) {
  choose_call(tp);
  // release: probe and app_probes before the word that leads to them
  __atomic_store_n(&tp->enabled, tp->app_probes != NULL ? &always_on : weft_registry_word(tp->name),
                   __ATOMIC_RELEASE);
}

// Joins every name of the object. It is called, too, when the object's entries are gone.
static void join_object(const struct weft_object* object, struct pins* pins) {
  for (uint32_t i = 0; i < object->event_count; ++i) {
    const char* name = object->events[i] != NULL ? weft_event_name(object->events[i]) : NULL;
    if (name != NULL && !lists(object, NULL, name)) join_name(name, pins);
  }
  for (uint32_t i = 0; i < object->tracepoint_count; ++i) {
    if (object->tracepoints[i] != NULL) join_name(object->tracepoints[i]->name, pins);
  }
}

bool weft_registry_add(struct weft_object* object) {
  uint64_t mask;
  struct pins pins = {0};
  size_t at = 0;
  if (object->state != NULL || !weft_lock(&mask)) return false;
  object->state = object;
  for (uint32_t i = 0; i < object->event_count; ++i) {
    if (object->events[i] != NULL) add_event(object, object->events[i]);
  }
  for (uint32_t i = 0; i < object->tracepoint_count; ++i) {
    if (object->tracepoints[i] != NULL) add_tracepoint(object, object->tracepoints[i], &at);
  }
  join_object(object, &pins);
  for (uint32_t i = 0; i < object->tracepoint_count; ++i) {
    if (object->tracepoints[i] != NULL) weft_registry_turn_on(object->tracepoints[i]);
  }
  weft_unlock(mask);
  for (uint32_t i = 0; i < pins.count; ++i) weft_pin_object(pins.events[i]);
  return true;
}

void weft_registry_remove(struct weft_object* object) {
  uint64_t mask;
  if (object->state != object || !weft_lock(&mask)) return;
  object->state = NULL;
  for (uint32_t i = 0; i < object->tracepoint_count; ++i) {
    if (object->tracepoints[i] != NULL) {
      erase(object, object->tracepoints[i]->name, object->tracepoints[i]);
    }
  }
  for (uint32_t i = 0; i < object->event_count; ++i) {
    struct weft_event* event = object->events[i];
    if (event != NULL) erase(object, weft_event_name(event), event);
  }
  join_object(object, NULL);
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

struct iteration {
  int (*fn)(void* data, const char* name, const struct weft_event_desc* desc);
  void* data;
};

static int iterate_one(void* data, struct weft_registry_entry* entry) {
  const struct iteration* it = data;
  const struct weft_tracepoint* tp = entry->tracepoint;
  if (tp == NULL) return 0;
  // Objects may have one of a name each: the last one of its bucket stands for them.
  for (const struct weft_registry_entry* e = entry->next; e != NULL; e = e->next) {
    if (e->tracepoint != NULL && weft_equal(e->tracepoint->name, tp->name)) return 0;
  }
  return it->fn(it->data, tp->name, tp->event != NULL ? tp->event->desc : NULL);
}

int weft_registry_iterate(int (*fn)(void* data, const char* name,
                                    const struct weft_event_desc* desc),
                          void* data) {
  uint64_t mask;
  struct iteration it = {fn, data};
  if (!weft_lock(&mask)) return -ENOMEM;
  const int result = weft_registry_each(iterate_one, &it);
  weft_unlock(mask);
  return result;
}

bool weft_registry_is_on(const struct weft_tracepoint* tp) {
  // relaxed: a hint that the event itself decides again
  if (*tp->enabled == 0) return false;
  if (__atomic_load_n(&tp->app_probes, __ATOMIC_RELAXED) != NULL) return true;
  const struct weft_providers* all = weft_registry_providers(tp);
  for (uint32_t i = 0; all != NULL && i < all->count; ++i) {
    if (weft_event_is_on(all->list[i].event)) return true;
  }
  if (all != NULL) return false;
  // acquire: pairs with join's release. It stays: its object is the tracepoint's own, or pinned
  struct weft_event* event = __atomic_load_n(&tp->event, __ATOMIC_ACQUIRE);
  return event != NULL && weft_event_is_on(event);
}
