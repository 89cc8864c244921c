/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tells libweft.so, if the process has one, which tracepoints and events this shared object (or
 * program) has. Included by a file that defines some; several such files of one object share one
 * struct weft_object (weak, hidden) and register it once. Runs in constructors and destructors, so
 * under ld.so's lock, one at a time.
 *
 * Priority 101, the first one open to programs: tracepoints in the constructors of C++ objects work.
 */
#ifndef WEFT_DETAIL_OBJECT_H_
#define WEFT_DETAIL_OBJECT_H_

#include "abi.h"
#include "compiler.h"

WEFT_BEGIN_C

/* The linker makes these; an object without events (or without tracepoints) has NULL there. */
extern struct weft_tracepoint* const __start_weft_tracepoints[]
    __attribute__((weak, visibility("hidden")));
extern struct weft_tracepoint* const __stop_weft_tracepoints[]
    __attribute__((weak, visibility("hidden")));
extern struct weft_event* const __start_weft_events[] __attribute__((weak, visibility("hidden")));
extern struct weft_event* const __stop_weft_events[] __attribute__((weak, visibility("hidden")));

__attribute__((weak, visibility("hidden"))) struct weft_object weft_this_object;
__attribute__((weak, visibility("hidden"))) unsigned weft_this_object_users;

WEFT_END_C

static void __attribute__((constructor(101), used, no_instrument_function)) weft_object_construct(
    void) {
  struct weft_object* object = &weft_this_object;
  void (*address)(void) = WEFT_LIBRARY_SYMBOL(weft_object_register);
  if (weft_this_object_users++ > 0 || !address) return;
  object->size = sizeof(*object);
  object->abi = WEFT_TRACEPOINT_ABI;
  object->tracepoints = __start_weft_tracepoints;
  object->events = __start_weft_events;
  object->tracepoint_count = (uint32_t)(__stop_weft_tracepoints - __start_weft_tracepoints);
  object->event_count = (uint32_t)(__stop_weft_events - __start_weft_events);
  ((void (*)(struct weft_object*))address)(object);
}

static void __attribute__((destructor(101), used, no_instrument_function)) weft_object_destroy(
    void) {
  void (*address)(void) = WEFT_LIBRARY_SYMBOL(weft_object_unregister);
  if (--weft_this_object_users > 0 || !address) return;
  ((void (*)(struct weft_object*))address)(&weft_this_object);
}

#endif /* WEFT_DETAIL_OBJECT_H_ */
