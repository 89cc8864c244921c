/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only */
/*
 * Filter programs are the compiled form of an expression over an event's fields and contexts. The
 * compiler (lib/event/filter_compiler.h, in the agent) writes them; libweft.so and the kernel
 * validate them, link them to an event's description and run them (lib/event/filter.h). Both sides
 * treat them as foreign bytes. The language and a worked example: docs/formats/filter.md.
 *
 * A program is symbolic: it names fields and contexts, so that one program serves all events of a
 * rule. Layout, byte after byte, all integers little-endian, nothing aligned in place:
 *
 *   struct weft_filter_program
 *   symbols[symbol_count]
 *   insns[insn_count]
 *   literals[literal_bytes]
 *
 * A program is for a stack machine. Values on the stack are integers (int64, two's complement),
 * floats (IEEE 754 binary64) and strings. Rules that the validator proves, so that a program cannot
 * loop, nor read anything but the event, and ends within insn_count steps:
 *   1. jumps go forward only, to an instruction;
 *   2. the depth of the stack at an instruction is the same on every way there, at least what the
 *      instruction takes, and at most max_stack;
 *   3. the last instruction, and only it, is RETURN, at depth 1.
 * Types are checked when the program is linked, since only then they are known.
 *
 * Extension rules: a reader refuses a version, an operation, a flag or a non-zero reserved field
 * that it does not know: a filter that is half understood would let wrong events pass.
 */
#ifndef WEFT_LIB_ABI_FILTER_H_
#define WEFT_LIB_ABI_FILTER_H_

#include "event.h"

#define WEFT_FILTER_MAGIC 0x544c4657u /* "WFLT" */
#define WEFT_FILTER_VERSION 1u

/* Limits: an expression of a page of text is far below each. They bound the time of one evaluation
 * and the memory of one linked program. */
#define WEFT_FILTER_MAX_BYTES (64u * 1024u)
#define WEFT_FILTER_MAX_INSNS 1024u
#define WEFT_FILTER_MAX_SYMBOLS 128u
#define WEFT_FILTER_MAX_STACK 16u
#define WEFT_FILTER_MAX_LITERAL_BYTES (16u * 1024u)

enum weft_filter_feature {
  WEFT_FILTER_FEATURE_FLOAT = 1 << 0, /* has a float constant: the kernel refuses it */
};

struct weft_filter_program {
  uint32_t magic;
  uint16_t version;
  uint16_t header_size; /* bytes of this header */
  uint32_t size;        /* bytes of everything */
  uint16_t insn_count;
  uint16_t symbol_count;
  uint32_t literal_bytes;
  uint16_t max_stack; /* deepest stack that the program needs */
  uint16_t reserved0;
  uint32_t features; /* enum weft_filter_feature */
  uint32_t reserved1;
};
WEFT_ABI_ASSERT(sizeof(struct weft_filter_program) == 32, "filter program header is 32 bytes");

enum weft_filter_symbol_kind {
  WEFT_FILTER_SYMBOL_FIELD = 1,   /* name: "a", or "a.b[2].c" for a nested field */
  WEFT_FILTER_SYMBOL_CONTEXT = 2, /* $ctx.name */
  WEFT_FILTER_SYMBOL_APP = 3,     /* $app.provider:name; name: "provider:name" */
};

enum weft_filter_symbol_flag {
  WEFT_FILTER_SYMBOL_INDEX = 1 << 0, /* element `index` of the array or sequence */
};

struct weft_filter_symbol {
  uint8_t kind;
  uint8_t flags;
  uint16_t name_size;   /* bytes, without a NUL, at least 1 */
  uint32_t name_offset; /* in literals */
  uint64_t index;       /* 0 without INDEX */
};
WEFT_ABI_ASSERT(sizeof(struct weft_filter_symbol) == 16, "filter symbol is 16 bytes");

/* Stack before and after an instruction. `imm`, `size` and `arg` are 0 where they are not named. A
 * comparison or `!` leaves integer 1 or 0. "True" is not equal to 0. */
enum weft_filter_op {
  WEFT_FILTER_OP_RETURN = 1,       /* a ->           the filter's result: is a true? */
  WEFT_FILTER_OP_PUSH_INT = 2,     /* -> imm */
  WEFT_FILTER_OP_PUSH_FLOAT = 3,   /* -> float with the bits of imm */
  WEFT_FILTER_OP_PUSH_STRING = 4,  /* -> literals[imm, imm + size), without a NUL */
  WEFT_FILTER_OP_PUSH_PATTERN = 5, /* -> the same; `*` matches anything, `\` quotes one byte */
  WEFT_FILTER_OP_PUSH_SYMBOL = 6,  /* -> the value of symbol arg */
  WEFT_FILTER_OP_NEG = 7,          /* a -> -a        integer (wraps) or float */
  WEFT_FILTER_OP_PLUS = 8,         /* a -> a         integer or float */
  WEFT_FILTER_OP_NOT = 9,          /* a -> !a        integer or float */
  WEFT_FILTER_OP_BIT_NOT = 10,     /* a -> ~a        integer */
  WEFT_FILTER_OP_SHL = 11, /* a b -> a << b  integers; b outside 0..63: the filter is false */
  WEFT_FILTER_OP_SHR = 12, /* a b -> a >> b  of uint64: zeros come in */
  WEFT_FILTER_OP_AND = 13, /* a b -> a & b   integers */
  WEFT_FILTER_OP_XOR = 14, /* a b -> a ^ b */
  WEFT_FILTER_OP_OR = 15,  /* a b -> a | b */
  WEFT_FILTER_OP_EQ = 16,  /* a b -> a == b  integers, floats (an integer beside a float */
  WEFT_FILTER_OP_NE = 17,  /* a b -> a != b  becomes one), strings, string and pattern */
  WEFT_FILTER_OP_LT = 18,  /* a b -> a < b   integers and floats only, signed */
  WEFT_FILTER_OP_LE = 19,
  WEFT_FILTER_OP_GT = 20,
  WEFT_FILTER_OP_GE = 21,
  WEFT_FILTER_OP_AND_ELSE = 22, /* a: true: taken, goes on; else leaves 0, jumps to insn arg */
  WEFT_FILTER_OP_OR_ELSE = 23,  /* a: true: leaves 1, jumps to insn arg; else taken, goes on */
  WEFT_FILTER_OP_BOOL = 24,     /* a -> a != 0    integer or float */
  WEFT_FILTER_OP_COUNT = 25,
};

struct weft_filter_insn {
  uint8_t op;
  uint8_t reserved;
  uint16_t arg;
  uint32_t size;
  uint64_t imm;
};
WEFT_ABI_ASSERT(sizeof(struct weft_filter_insn) == 16, "filter instruction is 16 bytes");

#endif /* WEFT_LIB_ABI_FILTER_H_ */
