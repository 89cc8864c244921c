/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The ABI between a program compiled with <weft/tracepoint.h> and libweft.so in the same
 * process. Programs live longer than libraries: this ABI only grows, sizes are explicit, reserved
 * is zero.
 *
 * Objects
 *   weft_tracepoint  the call sites' side of an event: one per event name and shared object, in
 *                    the object's .data, defined by TRACEPOINT_DEFINE. The dynamic linker makes
 *                    objects that define the same one share the first: then several of them list
 *                    it.
 *   weft_event       the provider's side: description and probe, defined by
 *                    TRACEPOINT_CREATE_PROBES; maybe in another shared object.
 *   weft_object      all of both in one shared object. Its constructor calls weft_object_register,
 *                    its destructor weft_object_unregister, if the process has a libweft.so.
 * libweft.so joins tracepoints and events by name and signature, in whatever order objects come and
 * go (docs/adr/0025).
 *
 * Writers of the fields: after registration only libweft.so writes `enabled`, `probe`,
 * `only_probe`, `app_probes`, `providers`, `event`, `emit`, `state` and `wants`; a program reads
 * them with relaxed loads (`emit` plainly: it is stored before `probe`, and does not change).
 * `enabled` always points to a readable word: the object's own zero word until libweft.so points it
 * at the control area.
 *
 * A call site:  if (*tp->enabled) {
 *                 if (tp->only_probe) {
 *                   tp->only_probe(args...);
 *                 } else {
 *                   app probes, see below;
 *                   if (tp->providers) each of probe_of(tp, object, 0, 1, ...)(args...);
 *                   else if (tp->probe) tp->probe(args...);
 *                 }
 *               }
 *               `only_probe` came later: older objects have a reserved word there and take the
 *               other branch; with an older libweft.so it is NULL. `providers` came after that:
 *               `size` shows whether an object has it; an older object calls `probe`, that of one
 *               provider.
 * A probe:      makes the image (lib/abi/event.h) on its stack, then
 *               event->emit(event, fixed, segments, return address of the call site).
 * *enabled != 0 means "perhaps": emit decides exactly.
 */
#ifdef WEFT_IN_PROGRAM
#pragma GCC system_header
#endif
#ifndef WEFT_LIB_ABI_TRACEPOINT_H_
#define WEFT_LIB_ABI_TRACEPOINT_H_

#include "event.h"

#define WEFT_TRACEPOINT_ABI 1u

struct weft_event;
struct weft_kept;      /* libweft.so's: memory lent to a probe */
struct weft_providers; /* libweft.so's: a tracepoint's, where it has several */

typedef void (*weft_emit_fn)(struct weft_event* event, const void* fixed,
                             const struct weft_segment* segments, const void* ip);

/* An application's own probe on a tracepoint. `fn` takes (void *data, the tracepoint's
   arguments). */
struct weft_app_probe {
  void (*fn)(void);
  void* data;
};

/* The application probes of one tracepoint; replaced whole, never changed in place. A call site
 * with a list does the following with sequentially consistent atomics: enters++; loads app_probes
 * again into list; calls each of list->probes[0 .. count); leaves++. weft_probe_detach waits for
 * a moment in which enters equals leaves: then no thread is inside, and every later call finds
 * the new list. */
struct weft_app_probes {
  uint32_t count;
  uint32_t reserved;
  struct weft_app_probe probes[];
};

struct weft_tracepoint {
  uint32_t size; /* sizeof(struct weft_tracepoint) as the object was compiled */
  uint32_t reserved0;
  const uint32_t* enabled;
  void (*probe)(void); /* NULL: no provider loaded. Cast to the typed prototype */
  const struct weft_app_probes* app_probes; /* NULL: none */
  uint32_t enters, leaves;                  /* of app_probes' callers; each wraps */
  const char* name;                         /* "provider:event" */
  const char* signature;                    /* the TP_ARGS as text: both sides must agree */
  struct weft_event* event;                 /* libweft.so's: whose probe it is */
  void (*only_probe)(void); /* `probe` while it is all that a call site has to call, else NULL */
  const struct weft_providers* providers; /* NULL: `probe` is all there is */
};
WEFT_ABI_ASSERT(sizeof(struct weft_tracepoint) == 8 + 3 * sizeof(void*) + 8 + 5 * sizeof(void*),
                "tracepoint has no padding on LP64");

enum weft_event_want {
  WEFT_WANT_NOWRITE = 1 << 0, /* a filter reads nowrite fields: put them into the image */
};

struct weft_event {
  uint32_t size;  /* sizeof(struct weft_event) as the object was compiled */
  uint32_t wants; /* enum weft_event_want */
  weft_emit_fn emit;
  void* state; /* libweft.so's */
  const struct weft_event_desc* desc;
  void (*probe)(void);
  const char* signature;
  const uint32_t* enabled;   /* the control area's word of this event */
  uint32_t fixed_size;       /* bytes of the recorded fixed part */
  uint32_t nowrite_size;     /* bytes of the nowrite fixed part behind it */
  uint16_t segment_count;    /* recorded segments */
  uint16_t nowrite_segments; /* nowrite segments behind them */
  uint32_t reserved32;
  uint64_t undecided; /* libweft.so's: events that came while none could be decided on */
  uint64_t reserved;
};

/* The arguments that an object defines a tracepoint with. The dynamic linker may give the object
 * another object's tracepoint of that name, which has other arguments. */
struct weft_tracepoint_arguments {
  struct weft_tracepoint* tracepoint;
  const char* signature;
};

struct weft_arguments_list {
  const struct weft_tracepoint_arguments* begin;
  const struct weft_tracepoint_arguments* end;
};

struct weft_object {
  uint32_t size;
  uint32_t abi; /* WEFT_TRACEPOINT_ABI */
  struct weft_tracepoint* const* tracepoints;
  struct weft_event* const* events;
  uint32_t tracepoint_count;
  uint32_t event_count;
  void* state;                        /* libweft.so's */
  const struct weft_library* library; /* NULL: none in this process. Written by libweft.so */
  /* In any order. A tracepoint of which it says nothing, or all where it is NULL, as with older
     headers, is taken to have the arguments of the object's call sites. */
  const struct weft_arguments_list* arguments;
};

/* A value of an application context ($app.provider:name). `type` is enum weft_context_dynamic of
 * context.h; integers and floats lie in `bits` as their own bytes; a string is copied at once. */
struct weft_app_context_value {
  uint32_t type;
  uint32_t reserved;
  uint64_t bits;
  const char* text; /* STRING: NUL-terminated */
};
typedef void (*weft_app_context_get)(void* data, struct weft_app_context_value* out);

/*
 * libweft.so's functions. Every object has them in `library` after it is registered. They are also
 * exported under the name weft_ and the member's. A constructor refers to weft_object_register
 * weakly through its GOT (in assembly: a plain weak reference in a non-PIE executable is linked to
 * 0), so that a program needs no library to link or to run.
 *
 * Some linkers (mold) make even that reference a constant 0 in an executable. Therefore an
 * executable has a note, name "weft", type WEFT_NOTE_OBJECT, that contains the address of its
 * weft_object relative to the note's own contents, as int64. libweft.so looks for it before the
 * executable's constructors run and fills in `library`.
 */
#define WEFT_NOTE_OBJECT 1

struct weft_library {
  uint32_t size; /* sizeof(struct weft_library) as libweft.so was compiled */
  uint32_t reserved;

  /* Any thread; register may come before libweft.so's own constructor, unregister waits for
     nothing. */
  void (*object_register)(struct weft_object*);
  void (*object_unregister)(struct weft_object*);

  /* Returns the exact answer of tracepoint_enabled(). */
  int (*tracepoint_enabled)(struct weft_tracepoint*);

  /* 0, or a negative errno: -ENOENT no such tracepoint, -EINVAL another signature (NULL: any will
   * do), -ENOMEM, -EDEADLK detached, but calls still ran after two seconds. */
  int (*probe_attach)(const char* name, const char* signature, void (*fn)(void), void* data);
  int (*probe_detach)(const char* name, void (*fn)(void), void* data);

  /* Calls fn once for each name of a tracepoint; `desc` is NULL if it has no provider. Stops at the
   * first result of fn that is not zero, and returns it. */
  int (*tracepoint_iterate)(int (*fn)(void* data, const char* name,
                                      const struct weft_event_desc* desc),
                            void* data);

  /* `name`: "provider:name". Returns 0, -EEXIST, -ENOENT, -ENOMEM or -ENOSPC. `get` is called at
   * events, on any thread and in signal handlers; it must not trace. Unregister does not wait for
   * running calls. */
  int (*app_context_register)(const char* name, weft_app_context_get get, void* data);
  int (*app_context_unregister)(const char* name);

  /* Members from here on are newer: `size` tells whether they exist. A probe calls this while it
   * makes an image. Returns memory for a copy of `size` bytes of one value, or
   * WEFT_SEGMENT_TOO_LARGE or WEFT_SEGMENT_NO_MEMORY as a pointer. `*kept` is NULL before the first
   * value; its last value goes to `release` after emit. May run in signal handlers. */
  void* (*keep)(struct weft_event* event, struct weft_kept** kept, uint64_t size);
  void (*release)(struct weft_kept* kept);

  /* It came with the two above. Returns the probe number `turn` that a call site in `object` calls
   * at a tracepoint with several providers; NULL: it has called all. May run in signal handlers. */
  void (*(*probe_of)(const struct weft_tracepoint* tracepoint, const struct weft_object* object,
                     uint32_t turn))(void);
};

#endif /* WEFT_LIB_ABI_TRACEPOINT_H_ */
