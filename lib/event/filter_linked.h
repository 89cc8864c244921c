/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only */
/*
 * The linked form of a filter program. weft_filter_link writes it and weft_filter_run executes it.
 * Internal to lib/event: it never leaves the memory of the process that made it.
 *
 *   struct weft_linked_filter | insns[insn_count] | literals (the program's)
 *
 * Instructions are of two sorts:
 *   tests   look at one field or context (or take the top of the stack) and go on at `jt` or `jf`.
 *           Almost every filter links to tests only, and needs no stack: `a > 5 && s == "x*"` is
 *           two.
 *   others  work on the stack and go on at the next instruction.
 * A comparison of an integer to a constant is always a test for a range: value - a <= b, unsigned.
 * `==` is a range of one value, `<` is `>=` with jt and jf exchanged: one operation for all six.
 */
#ifndef WEFT_LIB_EVENT_FILTER_LINKED_H_
#define WEFT_LIB_EVENT_FILTER_LINKED_H_

#include "lib/event/filter.h"

/* Values of jt and jf besides an instruction: the ends. */
#define WEFT_LINK_ACCEPT 0xffffu
#define WEFT_LINK_REJECT 0xfffeu

/* How an integer or float lies in memory. It is the `sub` of loads, and is added to the `op` of
 * range tests. */
enum weft_load {
  WEFT_LOAD_U8 = 0,
  WEFT_LOAD_S8 = 1,
  WEFT_LOAD_U16 = 2,
  WEFT_LOAD_S16 = 3,
  WEFT_LOAD_U32 = 4,
  WEFT_LOAD_S32 = 5,
  WEFT_LOAD_64 = 6,
  WEFT_LOAD_U16_SWAP = 7,
  WEFT_LOAD_S16_SWAP = 8,
  WEFT_LOAD_U32_SWAP = 9,
  WEFT_LOAD_S32_SWAP = 10,
  WEFT_LOAD_64_SWAP = 11,
  WEFT_LOAD_INT_COUNT = 12,
  WEFT_LOAD_F32 = 12, /* becomes binary64 */
  WEFT_LOAD_F64 = 13,
  WEFT_LOAD_F32_SWAP = 14,
  WEFT_LOAD_F64_SWAP = 15,
};

/* The place of a text. It is the `sub` of text tests and of LINK_TEXT. */
enum weft_text_source {
  WEFT_TEXT_COUNTED = 0, /* u32 length at `offset`, bytes in `segment` */
  WEFT_TEXT_INLINE = 1,  /* `size` bytes at `offset` */
  WEFT_TEXT_SEGMENT = 2, /* `size` bytes in `segment` */
};

enum weft_link_op {
  WEFT_LINK_NONE = 0, /* only while linking: no instruction here */

  /* Tests. The ones up to WEFT_LINK_LAST_PLAIN_TEST need no stack. */
  WEFT_LINK_RANGE = 1, /* + enum weft_load, an integer at `offset` */
  WEFT_LINK_RANGE_CONTEXT = WEFT_LINK_RANGE + WEFT_LOAD_INT_COUNT, /* context `size` */
  WEFT_LINK_TEXT_EQUAL,                                            /* text == literals[a, a + b) */
  WEFT_LINK_TEXT_PREFIX,   /* text begins with literals[a, a + b) */
  WEFT_LINK_TEXT_PATTERN,  /* text matches the pattern literals[a, a + b) */
  WEFT_LINK_FLOAT_COMPARE, /* float of `sub` at `offset`; `size` is the enum weft_filter_op; a:
                              bits */
  WEFT_LINK_LAST_PLAIN_TEST = WEFT_LINK_FLOAT_COMPARE,
  WEFT_LINK_RANGE_TOP, /* takes an integer from the stack */

  /* Others. */
  WEFT_LINK_INT,     /* -> a */
  WEFT_LINK_FLOAT,   /* -> a */
  WEFT_LINK_LITERAL, /* -> literals[a, a + b), of enum weft_filter_type `sub` */
  WEFT_LINK_LOAD,    /* -> the number at `offset` */
  WEFT_LINK_ELEMENT, /* -> the number at byte a of `segment`, if b < u32 at `offset` or `size` ==
                        0 */
  WEFT_LINK_TEXT,    /* -> text */
  WEFT_LINK_CONTEXT, /* -> context `size` of enum weft_filter_type `sub` */
  WEFT_LINK_NEG,
  WEFT_LINK_PLUS,
  WEFT_LINK_NOT,
  WEFT_LINK_BIT_NOT,
  WEFT_LINK_BOOL,
  WEFT_LINK_BITS,     /* a b -> a `sub` b, sub: enum weft_filter_op */
  WEFT_LINK_BITS_INT, /* top of the stack is an integer: top `sub` a */
  WEFT_LINK_COMPARE,  /* a b -> a `sub` b */
  WEFT_LINK_AND_ELSE, /* jumps to jt */
  WEFT_LINK_OR_ELSE,  /* jumps to jt */
  WEFT_LINK_RETURN,
};

struct weft_linked_insn {
  uint8_t op;
  uint8_t sub;
  uint16_t jt;
  uint16_t jf;
  uint16_t segment;
  uint16_t offset; /* in the fixed part */
  uint16_t moved;  /* only while linking */
  uint32_t size;
  uint64_t a;
  uint64_t b;
};
WEFT_ABI_ASSERT(sizeof(struct weft_linked_insn) == 32, "two instructions a cache line");

struct weft_linked_filter {
  uint32_t size;            /* bytes of everything */
  uint32_t literals_offset; /* from the start of this struct */
  uint16_t insn_count;
  uint16_t reads; /* enum weft_filter_reads */
  uint32_t reserved;
  const struct weft_filter_contexts* contexts;
  uint64_t reserved1;
  struct weft_linked_insn insns[];
};

#endif /* WEFT_LIB_EVENT_FILTER_LINKED_H_ */
