/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Runs fetch programs (lib/abi/fetch.h). The module turns a program that
 * lib/event/fetch_validate.h accepted into steps, which know where in the image each field lies;
 * probes run these steps. A step never fails: for memory that cannot be read the field is 0 or
 * empty, or the text "(fault)".
 */
#ifndef WEFT_KMOD_FETCH_H
#define WEFT_KMOD_FETCH_H

#include "scope.h"
#include "lib/abi/fetch.h"
#include "lib/event/description_walk.h"

/* Register n of REG is argument this + n of what probes with registers run on; behind the last one
 * is the zero of WEFT_FETCH_REG_ZERO. As a bit of an event's `arguments` it means that the program
 * reads registers. */
#define WEFT_REGISTER_ARGUMENTS WEFT_FETCH_MAX_ARGS

/* Step codes are those of programs, and: */
enum weft_fetch_step_code {
	WEFT_STEP_ARG_STORE8 = 64, /* ARG and STORE of all 8 bytes in one */
	WEFT_STEP_ARG_STORE4,
	WEFT_STEP_STORE_USER, /* STORE of what may be an address of user memory only */
	WEFT_STEP_END,
};

#define WEFT_STEP_TEXT	 0x80 /* flag: BYTES or a SEQUENCE that are text */
#define WEFT_STEP_PARTS	 0x40 /* flag: SEQUENCE whose elements are read one by one */
#define WEFT_STEP_GATHER 0x20 /* flag: one of these is GATHER */

struct weft_fetch_step {
	u8 code;
	u8 arg;
	u8 size;
	u8 flags; /* enum weft_fetch_flag, WEFT_STEP_... */
	s32 offset;
	u32 limit; /* STRING: bytes; SEQUENCE: elements */
	u16 out;   /* offset in the fixed part */
	u16 segment;
};

/* The input of one run of a program. */
struct weft_fetch_run {
	const u64 *args;
	const struct weft_scope *scope; /* NULL: everything is in scope */
	u8 *fixed;
	struct weft_segment *segments;
	u8 *scratch; /* where segments are put: WEFT_FETCH_MAX_BYTES */
};

/* Makes steps of a validated program of `count` operations. `steps` has room for count + 1. */
void weft_fetch_make(struct weft_fetch_step *steps, const struct weft_fetch_op *ops, u32 count,
		     const void *desc, const struct weft_description_layout *layout);

/* Do steps only store arguments? */
bool weft_fetch_is_plain(const struct weft_fetch_step *steps);

/* Preemption is off. */
void weft_fetch_run(const struct weft_fetch_step *steps, struct weft_fetch_run *run);

#endif /* WEFT_KMOD_FETCH_H */
