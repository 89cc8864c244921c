/* SPDX-License-Identifier: Apache-2.0 */
/*
 * This shared object (or program) as libweft.so sees it: its tracepoints and events, and the way to
 * the library's functions. Every file that includes a header of weft takes part in the one struct
 * weft_object of its object (weak, hidden), which is registered once, by constructors and
 * destructors: under ld.so's lock, one at a time.
 *
 * Priority 101, the first one open to programs: tracepoints in the constructors of C++ objects
 * work.
 */
#pragma GCC system_header
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
extern const struct weft_tracepoint_arguments __start_weft_arguments[]
    __attribute__((weak, visibility("hidden")));
extern const struct weft_tracepoint_arguments __stop_weft_arguments[]
    __attribute__((weak, visibility("hidden")));
extern struct weft_event* const __start_weft_events[] __attribute__((weak, visibility("hidden")));
extern struct weft_event* const __stop_weft_events[] __attribute__((weak, visibility("hidden")));

/* NOLINTBEGIN(misc-definitions-in-headers): weak */
__attribute__((weak, used, visibility("hidden"))) struct weft_object weft_this_object;
__attribute__((weak, visibility("hidden"))) unsigned weft_this_object_users;
/* NOLINTEND(misc-definitions-in-headers) */

WEFT_END_C

/* The table of libweft.so's functions, or NULL in a process without it. */
#define WEFT_LIBRARY WEFT_LOAD(weft_this_object.library)

/* The note by which libweft.so finds an executable's object; see weft/abi/tracepoint.h. */
#define WEFT_WRITE_NOTE()                       \
  __asm__ __volatile__(                         \
      ".pushsection .note.weft,\"a\",@note\n\t" \
      ".balign 4\n\t"                           \
      ".4byte 5, 8, 1\n\t"                      \
      ".asciz \"weft\"\n\t"                     \
      ".balign 4\n\t"                           \
      ".8byte weft_this_object - .\n\t"         \
      ".popsection")

/* Returns the address of weft_object_register, or NULL. The GOT entry is filled by ld.so, or at
 * link time with 0 in a static program. */
static inline
    __attribute__((unused,
                   no_instrument_function)) void (*weft_find_register(void))(struct weft_object*) {
  void (*address)(struct weft_object*);
#if defined(__x86_64__)
  __asm__(
      ".weak weft_object_register\n\t"
      "{movq weft_object_register@GOTPCREL(%%rip), %0|"
      "mov %0, QWORD PTR weft_object_register@GOTPCREL[rip]}"
      : "=r"(address));
#elif defined(__aarch64__)
  __asm__(
      ".weak weft_object_register\n\t"
      "adrp %0, :got:weft_object_register\n\t"
      "ldr %0, [%0, :got_lo12:weft_object_register]"
      : "=r"(address));
#else
#error "weft supports x86-64 and arm64"
#endif
  return address;
}

static void __attribute__((constructor(101), used, no_instrument_function)) weft_object_construct(
    void) {
  static const struct weft_arguments_list arguments = {__start_weft_arguments,
                                                       __stop_weft_arguments};
  struct weft_object* object = &weft_this_object;
  void (*object_register)(struct weft_object*);
  WEFT_WRITE_NOTE();
  if (weft_this_object_users++ > 0) return;
  object_register = object->library ? object->library->object_register : weft_find_register();
  if (!object_register) return;
  object->size = sizeof(*object);
  object->abi = WEFT_TRACEPOINT_ABI;
  object->tracepoints = __start_weft_tracepoints;
  object->events = __start_weft_events;
  object->tracepoint_count = (uint32_t)(__stop_weft_tracepoints - __start_weft_tracepoints);
  object->event_count = (uint32_t)(__stop_weft_events - __start_weft_events);
  object->arguments = &arguments;
  object_register(object);
}

static void __attribute__((destructor(101), used, no_instrument_function)) weft_object_destroy(
    void) {
  struct weft_object* object = &weft_this_object;
  if (--weft_this_object_users == 0 && object->library) object->library->object_unregister(object);
}

#endif /* WEFT_DETAIL_OBJECT_H_ */
