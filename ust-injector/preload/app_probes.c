// SPDX-License-Identifier: Apache-2.0
// See app_probes.h. A list is replaced whole and never freed: a thread that found it may be walking
// it. Detach waits for a moment without a call inside, so the caller may unload the probe. Where
// other probes stay and many threads call them without a pause, there may be no such moment: then
// it gives up, and returns an error.
#include "ust-injector/preload/app_probes.h"

#include <errno.h>

#include "ust-injector/preload/lock.h"
#include "ust-injector/preload/memory.h"
#include "ust-injector/preload/registry.h"
#include "ust-injector/preload/sys.h"
#include "ust-injector/preload/text.h"

// How long a detach waits for running calls: some yields, then 2000 sleeps of 1 ms. No probe takes
// that long. A detach from inside a probe waits for itself, and must get an error.
#define WEFT_DETACH_YIELDS 1000u
#define WEFT_DETACH_SLEEPS 2000u

// Stores the new list into every tracepoint of this one's name and arguments.
static void set_list(const struct weft_tracepoint* tp, const struct weft_app_probes* list) {
  for (struct weft_registry_entry* e = weft_registry_bucket(tp->name); e != NULL; e = e->next) {
    if (e->tracepoint == NULL || !weft_equal(e->tracepoint->name, tp->name) ||
        !weft_equal(e->tracepoint->signature, tp->signature)) {
      continue;
    }
    // seq_cst: before the loads of `enters` and `leaves` below, after a call site's enters++
    __atomic_store_n(&e->tracepoint->app_probes, list, __ATOMIC_SEQ_CST);
    weft_registry_turn_on(e->tracepoint);
  }
}

// Returns the next tracepoint of the name behind `after`; NULL: the first one.
static struct weft_registry_entry* find_next(const char* name, struct weft_registry_entry* after) {
  struct weft_registry_entry* e = after != NULL ? after->next : weft_registry_bucket(name);
  while (e != NULL && (e->tracepoint == NULL || !weft_equal(e->tracepoint->name, name))) {
    e = e->next;
  }
  return e;
}

static uint32_t index_of(const struct weft_app_probes* list, void (*fn)(void), const void* data) {
  uint32_t i = 0;
  while (list != NULL && i < list->count &&
         (list->probes[i].fn != fn || list->probes[i].data != data)) {
    ++i;
  }
  return list != NULL && i < list->count ? i : UINT32_MAX;
}

// Returns a copy of `old` without its entry number `skip` and with room for `extra` more.
static struct weft_app_probes* copy_list(const struct weft_app_probes* old, uint32_t skip,
                                         uint32_t extra) {
  const uint32_t n = old != NULL ? old->count : 0;
  struct weft_app_probes* list =
      weft_allocate(sizeof(*list) + (n + extra) * sizeof(list->probes[0]));
  if (list == NULL) return NULL;
  for (uint32_t i = 0; i < n; ++i) {
    if (i != skip) list->probes[list->count++] = old->probes[i];
  }
  return list;
}

int weft_app_probes_attach(const char* name, const char* signature, void (*fn)(void), void* data) {
  uint64_t mask;
  if (!weft_lock(&mask)) return -ENOMEM;
  struct weft_registry_entry* e = find_next(name, NULL);
  int result = e != NULL ? -EINVAL : -ENOENT;
  while (e != NULL && signature != NULL && !weft_equal(e->tracepoint->signature, signature)) {
    e = find_next(name, e);
  }
  if (e != NULL) {
    struct weft_app_probes* list = copy_list(e->tracepoint->app_probes, ~0u, 1);
    result = -ENOMEM;
    if (list != NULL) {
      list->probes[list->count].fn = fn;
      list->probes[list->count++].data = data;
      set_list(e->tracepoint, list);
      result = 0;
    }
  }
  weft_unlock(mask);
  return result;
}

// Is no call inside a tracepoint of the name that may have begun before the last set_list?
static bool is_quiet(const char* name) {
  uint64_t mask;
  if (!weft_lock(&mask)) return false;
  bool quiet = true;
  for (struct weft_registry_entry* e = weft_registry_bucket(name); e != NULL; e = e->next) {
    if (e->tracepoint == NULL || !weft_equal(e->tracepoint->name, name)) continue;
    // Loads `leaves` first: `enters` never falls behind it, so if both are equal, they were equal
    // when `leaves` was loaded. seq_cst, both: the loads come after the store of the new list
    // (set_list), and what the calls did before they left is visible.
    const uint32_t leaves = __atomic_load_n(&e->tracepoint->leaves, __ATOMIC_SEQ_CST);
    quiet = quiet && __atomic_load_n(&e->tracepoint->enters, __ATOMIC_SEQ_CST) == leaves;
  }
  weft_unlock(mask);
  return quiet;
}

static int wait_for_calls(const char* name) {
  const int64_t millisecond[2] = {0, 1000000};
  for (uint32_t i = 0; i < WEFT_DETACH_YIELDS + WEFT_DETACH_SLEEPS; ++i) {
    if (is_quiet(name)) return 0;
    if (i < WEFT_DETACH_YIELDS) {
      weft_syscall(__NR_sched_yield, 0);
    } else {
      weft_syscall(__NR_nanosleep, millisecond, 0);
    }
  }
  return -EDEADLK;
}

int weft_app_probes_detach(const char* name, void (*fn)(void), void* data) {
  uint64_t mask;
  if (!weft_lock(&mask)) return -ENOMEM;
  int result = -ENOENT;
  struct weft_registry_entry* e = find_next(name, NULL);
  while (e != NULL && index_of(e->tracepoint->app_probes, fn, data) == UINT32_MAX) {
    e = find_next(name, e);
  }
  if (e != NULL) {
    const struct weft_app_probes* old = e->tracepoint->app_probes;
    struct weft_app_probes* list =
        old->count > 1 ? copy_list(old, index_of(old, fn, data), 0) : NULL;
    result = list == NULL && old->count > 1 ? -ENOMEM : 0;
    if (result == 0) set_list(e->tracepoint, list);
  }
  weft_unlock(mask);
  return result != 0 ? result : wait_for_calls(name);
}
