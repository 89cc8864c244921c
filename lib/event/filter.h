/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only */
/*
 * Runs filter programs (lib/abi/filter.h): validates them, links them to one event, and runs them.
 * libweft.so and weft.ko read programs only with it; agents use it to refuse what the other side
 * would refuse.
 *
 * Callers validate and link in the slow path that decides about an event, and run at each event,
 * before any space is reserved, on the image (lib/abi/event.h). It is freestanding C without libc,
 * allocation, lock or state. It may run in any thread, signal handler and kernel context.
 *
 * Linked programs: flat memory of the caller, aligned to 8, immutable after linking, shared by any
 * number of threads. They hold pointers to `contexts` only. They are made by weft_filter_link and
 * are trusted by weft_filter_run: memory that others can write is no place for them.
 *
 * A run may read only the `fixed` bytes and the segments that the description promises. It ends
 * after at most the program's instructions, plus the bytes of the strings that it compares.
 *
 * Floats: not in the kernel (WEFT_FILTER_NO_FLOAT): programs with float constants and references to
 * float fields are refused there.
 */
#ifndef WEFT_LIB_EVENT_FILTER_H_
#define WEFT_LIB_EVENT_FILTER_H_

#include "lib/abi/filter.h"
#include "lib/event/description_walk.h"

#if defined(__KERNEL__) && !defined(WEFT_FILTER_NO_FLOAT)
#define WEFT_FILTER_NO_FLOAT 1
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* Types of values. ANY: it is known only when the value is read (application contexts). */
enum weft_filter_type {
  WEFT_FILTER_INT = 1,
  WEFT_FILTER_FLOAT = 2,
  WEFT_FILTER_STRING = 3,
  WEFT_FILTER_PATTERN = 4, /* literals only */
  WEFT_FILTER_ANY = 5,     /* never the type of a value */
};

struct weft_filter_value {
  uint64_t bits;    /* INT: as int64 (unsigned ones reinterpreted); FLOAT: bits of a binary64 */
  const char* text; /* STRING: up to `size` bytes, or up to the first NUL before that */
  uint32_t size;
  uint32_t type; /* enum weft_filter_type */
};

/* The source of a program's contexts. It must live as long as the linked programs do. */
struct weft_filter_contexts {
  /* Called while linking. Returns the caller's own number for the context and, in *type, its type
   * (INT, FLOAT, STRING or ANY); or -ENOENT: the filter does not match. `kind`:
   * WEFT_FILTER_SYMBOL_CONTEXT or _APP. `name` has name_size bytes and no NUL: "vpid",
   * "perf:thread:cycles", "provider:name". */
  int (*find)(const struct weft_filter_contexts* self, uint8_t kind, const char* name,
              uint32_t name_size, uint8_t* type);
  /* Run: the value of context `number` into *value, which is zero before; 0, or negative: there is
   * none now, and the filter is false. `arg` is weft_filter_run's. A value whose type is not the
   * one that `find` gave makes the filter false. */
  int (*fetch)(void* arg, uint32_t number, struct weft_filter_value* value);
};

struct weft_linked_filter; /* opaque */

#ifdef __KERNEL__
/* In weft.ko, this is `fetch` in all its weft_filter_contexts. */
int weft_filter_context_fetch(void* arg, uint32_t number, struct weft_filter_value* value);
/* Fetches a context whose type is INT: it always has a value in weft.ko. */
uint64_t weft_filter_context_int(void* arg, uint32_t number);
#endif

/* Is this a program that obeys lib/abi/filter.h? `available`: bytes at `program`, which may be
 * hostile but must not change meanwhile; nothing is aligned. Returns 0; -EINVAL: not well-formed or
 * over a limit; -EOPNOTSUPP: a later version, or floats in a build without them. */
int weft_filter_validate(const void* program, uint32_t available);

/* Bytes, at most, that linking a program with this header needs (it was validated). */
uint32_t weft_filter_link_bound(const void* program);

/* Makes the program for one event into out (aligned to 8). Validates it first. Returns the bytes
 * used, at most weft_filter_link_bound(program); the result may be moved to other memory of the
 * same alignment. If out is NULL, it returns the bound. Errors:
 *   -ENOENT      a field or context is not there: the rule does not match this event
 *   -EPROTOTYPE  types do not fit (a string compared to a number, an index into no array, an index
 *                beyond an array): the rule does not match this event
 *   -EINVAL, -EOPNOTSUPP  as validate: the program is broken
 *   -ENOSPC      out_size is too small
 * `contexts` may be NULL: then there are none. */
int weft_filter_link(const void* program, uint32_t available, const void* desc,
                     const struct weft_description_layout* layout,
                     const struct weft_filter_contexts* contexts, void* out, uint32_t out_size);

enum weft_filter_reads {
  WEFT_FILTER_READS_NOWRITE = 1 << 0, /* needs the nowrite fields in the image */
  WEFT_FILTER_READS_CONTEXT = 1 << 1, /* calls contexts->fetch */
  WEFT_FILTER_READS_FIELD = 1 << 2,   /* without: it may run before there is an image */
};

/* Returns the enum weft_filter_reads of a linked program. */
uint32_t weft_filter_reads(const struct weft_linked_filter* filter);

/* Shall the event be recorded? `segments` may be NULL if the event has none. Also returns false if
 * the result is undefined: a shift by less than 0 or more than 63, an index beyond a sequence, a
 * context without a value, types of dynamic values that do not fit. */
bool weft_filter_run(const struct weft_linked_filter* filter, const void* fixed,
                     const struct weft_segment* segments, void* context_arg);

#ifdef __cplusplus
}
#endif

#endif /* WEFT_LIB_EVENT_FILTER_H_ */
