/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only */
/*
 * Checks a fetch program (lib/abi/fetch.h) for an event. weft.ko calls it before it attaches a
 * probe, the agent before it calls weft.ko. It is freestanding C without allocation, recursion or
 * state.
 *
 * A program is accepted if, and only if, it
 *   1. makes each field of the description once, in their order, with the field's own size, and
 *      ends with the last one;
 *   2. reads only arguments and registers that an event of this kind has on this machine;
 *   3. makes at most WEFT_FETCH_MAX_FIXED fixed bytes and WEFT_FETCH_MAX_SEGMENTS segments of at
 *      most WEFT_FETCH_MAX_BYTES, nowrite fields included;
 *   4. has TASK and WEFT_FETCH_TRUSTED only where A is a whole argument of a tracepoint or STATE
 *      (TRUSTED: with offsets added, but nothing loaded in between), so that a plain read never
 *      uses an address that came from a user or from memory.
 *
 * The agent answers for the type of such an argument: it cannot be checked here.
 */
#ifndef WEFT_LIB_EVENT_FETCH_VALIDATE_H_
#define WEFT_LIB_EVENT_FETCH_VALIDATE_H_

#include "lib/abi/kernel.h"
#include "lib/event/description_walk.h"

#ifdef __cplusplus
extern "C" {
#endif

enum weft_fetch_use {
  WEFT_FETCH_USES_TASK = 1 << 0,   /* asks for the session's scope */
  WEFT_FETCH_USES_USER = 1 << 1,   /* reads user memory */
  WEFT_FETCH_USES_KERNEL = 1 << 2, /* reads kernel memory that may fault */
  WEFT_FETCH_USES_REGISTERS = 1 << 3,
};

/* What a program needs from its event; the description's layout has the fixed bytes and the counts
 * of segments. */
struct weft_fetch_needs {
  uint32_t segment_bytes;         /* at most, of the recorded segments */
  uint32_t nowrite_segment_bytes; /* at most, of those behind them */
  uint32_t args;                  /* bit n: argument n is read */
  uint32_t uses;                  /* enum weft_fetch_use */
};

/* Returns the number of arguments that an event of this kind (enum weft_kernel_event_kind) has; 0:
 * no such kind. A tracepoint may have fewer. */
uint32_t weft_fetch_arg_count(uint32_t kind);

/* Checks `count` operations, which need no alignment and may be hostile but must not change
 * meanwhile. `layout` is weft_description_check's of `desc`. 0; -EINVAL: breaks a rule (*out is
 * untouched); -EOPNOTSUPP: an operation or flag that this version does not know. */
int weft_fetch_validate(const void* ops, uint32_t count, uint32_t kind, const void* desc,
                        const struct weft_description_layout* layout, struct weft_fetch_needs* out);

#ifdef __cplusplus
}
#endif

#endif /* WEFT_LIB_EVENT_FETCH_VALIDATE_H_ */
