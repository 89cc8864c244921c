/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only */
/*
 * Reads event descriptions (lib/abi/event.h) without a libc: libweft.so and weft.ko link filters
 * and lay out records with it. C++ has lib/event/description.h. It is freestanding C without
 * allocation, recursion or state: it may run in any thread and any signal handler. The bytes may be
 * hostile, but must not change during a call: copy shared memory first.
 */
#ifndef WEFT_LIB_EVENT_DESCRIPTION_WALK_H_
#define WEFT_LIB_EVENT_DESCRIPTION_WALK_H_

#include "lib/abi/event.h"

#ifndef __KERNEL__
#include <stdbool.h>
#endif

#ifdef __cplusplus
extern "C" {
#endif

#define WEFT_NO_SEGMENT 0xffffffffu

struct weft_description_layout {
  uint32_t size;             /* bytes of the description that were checked */
  uint32_t fixed_size;       /* bytes of the recorded fixed part */
  uint32_t nowrite_size;     /* bytes of the nowrite fixed part behind it */
  uint16_t segment_count;    /* recorded segments */
  uint16_t nowrite_segments; /* behind them */
  uint16_t field_count;
  uint16_t reserved;
  int32_t loglevel;
  const char* name; /* "provider:event", NUL-terminated, inside the description */
};

struct weft_description_field {
  const char* name;   /* inside the description, with its NUL */
  uint32_t name_size; /* bytes without the NUL */
  uint32_t count;     /* ARRAY: elements */
  uint32_t
      fixed_offset;     /* in the image's fixed part; for nowrite fields behind the recorded part */
  uint32_t fixed_bytes; /* there; 0: nothing */
  uint32_t segment;     /* index of the field's segment in the image, or WEFT_NO_SEGMENT */
  uint8_t kind;         /* enum weft_field_kind */
  uint8_t flags;        /* enum weft_field_flag */
  uint8_t elem_size;
  uint8_t reserved;
};

/* Checks everything that the walker relies on and computes the layout. `available` is how many
 * bytes there are at `desc`; the description may be shorter. 0, or -EINVAL: not a description
 * (`*out` is untouched). */
int weft_description_check(const void* desc, uint32_t available,
                           struct weft_description_layout* out);

/* The functions below take a description that weft_description_check accepted, and its layout. */

/* Finds a field by name. 0, or -ENOENT. */
int weft_description_find(const void* desc, const struct weft_description_layout* layout,
                          const char* name, uint32_t name_size, struct weft_description_field* out);

/* Finds field number `index`, in the order of declaration. Returns 0 or -ENOENT. */
int weft_description_field_at(const void* desc, const struct weft_description_layout* layout,
                              uint32_t index, struct weft_description_field* out);

#ifdef __cplusplus
}
#endif

#endif /* WEFT_LIB_EVENT_DESCRIPTION_WALK_H_ */
