/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only */
/*
 * Specialises a filter program for one event: names become offsets, and what can be decided without
 * a stack becomes tests that jump to each other (filter_linked.h).
 *
 * It takes one pass over the program, which the validator accepted. Meanwhile there is one slot per
 * instruction of the program. A slot that lies ahead and is a jump's target has what is known of
 * the stack there (mark, join). At the end, the empty slots are removed.
 */
#include "lib/event/filter_linked.h"
#include "lib/event/filter_symbol.h"
#include "lib/event/freestanding.h"

struct linker {
  struct weft_filter_program head;
  const char* symbols;
  const char* insns;
  const char* literals;
  struct weft_filter_scope scope;
  struct weft_linked_insn* out;
  uint64_t types; /* enum weft_filter_type of the stack's values, 4 bits each, the top lowest */
  uint32_t depth;
  bool reached; /* does the instruction before go on here? */
};

static struct weft_filter_insn insn_at(const struct linker* l, uint32_t i) {
  struct weft_filter_insn insn;

  WEFT_READ(insn, l->insns + i * sizeof(insn));
  return insn;
}

static void push_type(struct linker* l, uint8_t type) {
  l->types = (l->types << 4) | type;
  l->depth++;
}

static uint8_t pop_type(struct linker* l) {
  uint8_t type = (uint8_t)(l->types & 15);

  l->types >>= 4;
  l->depth--;
  return type;
}

static bool top_is_int(const struct linker* l) {
  return l->depth > 0 && (l->types & 15) == WEFT_FILTER_INT;
}

/* Types on two ways to one instruction: what differs is known only when it runs. */
static uint64_t join(uint64_t a, uint64_t b) {
  uint32_t shift;

  for (shift = 0; shift < 64; shift += 4)
    if (((a ^ b) >> shift) & 15) a = (a & ~(15ull << shift)) | ((uint64_t)WEFT_FILTER_ANY << shift);
  return a;
}

/* Is a slot ahead a jump's target? `sub` tells it; `a` and `size` are types and depth there. */
static bool is_target(const struct linker* l, uint32_t i) { return l->out[i].sub != 0; }

static void mark(struct linker* l, uint32_t target, uint64_t types, uint32_t depth) {
  struct weft_linked_insn* slot = &l->out[target];

  slot->a = slot->sub ? join(slot->a, types) : types;
  slot->sub = 1;
  slot->size = depth;
}

static void clear(struct weft_linked_insn* insn) {
  static const struct weft_linked_insn zero;

  *insn = zero;
}

static bool is_compare(uint8_t op) { return op >= WEFT_FILTER_OP_EQ && op <= WEFT_FILTER_OP_GE; }
static bool is_bits(uint8_t op) { return op >= WEFT_FILTER_OP_SHL && op <= WEFT_FILTER_OP_OR; }
static bool is_constant(uint8_t op) {
  return op >= WEFT_FILTER_OP_PUSH_INT && op <= WEFT_FILTER_OP_PUSH_PATTERN;
}

/* Where does a condition with this outcome go on, that the instruction `pc` takes from the stack?
 * Returns an instruction or an end; -1: an instruction needs the outcome as a number. It only goes
 * forward, so it ends. */
static int32_t follow(const struct linker* l, uint32_t pc, bool outcome) {
  for (;;) {
    struct weft_filter_insn insn = insn_at(l, pc);

    switch (insn.op) {
      case WEFT_FILTER_OP_RETURN:
        return outcome ? (int32_t)WEFT_LINK_ACCEPT : (int32_t)WEFT_LINK_REJECT;
      case WEFT_FILTER_OP_NOT:
        outcome = !outcome;
        pc++;
        break;
      case WEFT_FILTER_OP_BOOL:
      case WEFT_FILTER_OP_PLUS:
        pc++;
        break;
      case WEFT_FILTER_OP_AND_ELSE:
        if (outcome) return (int32_t)(pc + 1);
        pc = insn.arg;
        break;
      case WEFT_FILTER_OP_OR_ELSE:
        if (!outcome) return (int32_t)(pc + 1);
        pc = insn.arg;
        break;
      default:
        return -1;
    }
  }
}

/* Puts a test into slot i, whose outcome the instruction `consumer` takes. The stack is already
 * as it is behind the test. False: the outcome is needed as a number; nothing was changed. */
static bool put_test(struct linker* l, uint32_t i, const struct weft_linked_insn* test, bool invert,
                     uint32_t consumer) {
  int32_t yes = follow(l, consumer, !invert);
  int32_t no = follow(l, consumer, invert);

  if (yes < 0 || no < 0) return false;
  l->out[i] = *test;
  l->out[i].jt = (uint16_t)yes;
  l->out[i].jf = (uint16_t)no;
  if ((uint32_t)yes < WEFT_LINK_REJECT) mark(l, (uint32_t)yes, l->types, l->depth);
  if ((uint32_t)no < WEFT_LINK_REJECT) mark(l, (uint32_t)no, l->types, l->depth);
  l->reached = false;
  return true;
}

/* Turns value `op` constant into value - a <= b, or its inverse. */
static bool make_range(struct weft_linked_insn* test, uint8_t op, uint64_t constant) {
  const uint64_t lowest = 1ull << 63, highest = ~lowest;

  switch (op) {
    case WEFT_FILTER_OP_GE:
    case WEFT_FILTER_OP_LT:
      test->a = constant;
      test->b = highest - constant;
      return op == WEFT_FILTER_OP_LT;
    case WEFT_FILTER_OP_LE:
    case WEFT_FILTER_OP_GT:
      test->a = lowest;
      test->b = constant - lowest;
      return op == WEFT_FILTER_OP_GT;
    default:
      test->a = constant;
      test->b = 0;
      return op == WEFT_FILTER_OP_NE;
  }
}

/* Makes a text test of a text load. */
static void make_text_test(const struct linker* l, struct weft_linked_insn* test,
                           const struct weft_filter_insn* literal) {
  const char* text = l->literals + literal->imm;
  uint32_t i;

  test->a = literal->imm;
  test->b = literal->size;
  if (literal->op == WEFT_FILTER_OP_PUSH_STRING) {
    test->op = WEFT_LINK_TEXT_EQUAL;
    return;
  }
  for (i = 0; i < literal->size && text[i] != '*' && text[i] != '\\'; i++) {
  }
  if (i + 1 == literal->size && text[i] == '*') {
    test->op = WEFT_LINK_TEXT_PREFIX;
    test->b = i;
  } else {
    test->op = WEFT_LINK_TEXT_PATTERN;
  }
}

/* Turns `load` (what PUSH_SYMBOL links to) beside a constant into a test, if there is one for
   it. */
static bool make_test(const struct linker* l, struct weft_linked_insn* load, uint8_t type,
                      const struct weft_filter_insn* constant, uint8_t op, bool* invert) {
  bool equality = op == WEFT_FILTER_OP_EQ || op == WEFT_FILTER_OP_NE;

  *invert = false;
  if (type == WEFT_FILTER_INT && constant->op == WEFT_FILTER_OP_PUSH_INT) {
    if (load->op == WEFT_LINK_LOAD)
      load->op = (uint8_t)(WEFT_LINK_RANGE + load->sub);
    else if (load->op == WEFT_LINK_CONTEXT)
      load->op = WEFT_LINK_RANGE_CONTEXT;
    else
      return false;
    *invert = make_range(load, op, constant->imm);
    return true;
  }
  if (load->op == WEFT_LINK_TEXT && equality &&
      (constant->op == WEFT_FILTER_OP_PUSH_STRING || constant->op == WEFT_FILTER_OP_PUSH_PATTERN)) {
    make_text_test(l, load, constant);
    *invert = op == WEFT_FILTER_OP_NE;
    return true;
  }
#ifndef WEFT_FILTER_NO_FLOAT
  if (type == WEFT_FILTER_FLOAT && load->op == WEFT_LINK_LOAD &&
      (constant->op == WEFT_FILTER_OP_PUSH_FLOAT || constant->op == WEFT_FILTER_OP_PUSH_INT)) {
    load->op = WEFT_LINK_FLOAT_COMPARE;
    load->size = op;
    load->a = constant->imm;
    if (constant->op == WEFT_FILTER_OP_PUSH_INT) {
      double converted = (double)(int64_t)constant->imm;

      WEFT_READ(load->a, &converted);
    }
    return true;
  }
#endif
  return false;
}

/* Links PUSH_SYMBOL in slot i. Returns how many instructions it linked, or a negative errno. */
static int link_symbol(struct linker* l, uint32_t i, const struct weft_filter_insn* insn) {
  static const struct weft_filter_insn zero = {.op = WEFT_FILTER_OP_PUSH_INT};
  struct weft_filter_symbol symbol;
  struct weft_linked_insn load, test;
  struct weft_filter_insn constant;
  uint8_t type, op;
  bool invert;
  int error;

  WEFT_READ(symbol, l->symbols + insn->arg * sizeof(symbol));
  clear(&load);
  error = weft_filter_resolve(&l->scope, &symbol, l->literals + symbol.name_offset, &load, &type);
  if (error) return error;
  constant = insn_at(l, i + 1); /* there is one: RETURN is the last */
  test = load;
  if (is_constant(constant.op) && !is_target(l, i + 1)) {
    op = insn_at(l, i + 2).op; /* a constant is not the last either */
    if (is_compare(op) && !is_target(l, i + 2) &&
        make_test(l, &test, type, &constant, op, &invert) && put_test(l, i, &test, invert, i + 3))
      return 3;
  } else if (make_test(l, &test, type, &zero, WEFT_FILTER_OP_NE, &invert) &&
             put_test(l, i, &test, invert, i + 1)) {
    return 1;
  }
  l->out[i] = load;
  push_type(l, type);
  return 1;
}

/* Links a constant in slot i; the next instruction may take it as an operand. */
static int link_constant(struct linker* l, uint32_t i, const struct weft_filter_insn* insn) {
  static const uint8_t types[] = {WEFT_FILTER_INT, WEFT_FILTER_FLOAT, WEFT_FILTER_STRING,
                                  WEFT_FILTER_PATTERN};
  struct weft_linked_insn* slot = &l->out[i];
  struct weft_linked_insn test;
  uint8_t next = insn_at(l, i + 1).op;
  bool shifts = next == WEFT_FILTER_OP_SHL || next == WEFT_FILTER_OP_SHR;

  if (insn->op == WEFT_FILTER_OP_PUSH_INT && top_is_int(l) && !is_target(l, i + 1)) {
    if (is_bits(next) && (!shifts || insn->imm <= 63)) {
      slot->op = WEFT_LINK_BITS_INT;
      slot->sub = next;
      slot->a = insn->imm;
      return 2;
    }
    if (is_compare(next)) {
      bool invert;

      clear(&test);
      test.op = WEFT_LINK_RANGE_TOP;
      invert = make_range(&test, next, insn->imm);
      (void)pop_type(l);
      if (put_test(l, i, &test, invert, i + 2)) return 2;
      push_type(l, WEFT_FILTER_INT);
    }
  }
  slot->a = insn->imm;
  slot->b = insn->size;
  slot->sub = types[insn->op - WEFT_FILTER_OP_PUSH_INT];
  slot->op = insn->op == WEFT_FILTER_OP_PUSH_INT     ? WEFT_LINK_INT
             : insn->op == WEFT_FILTER_OP_PUSH_FLOAT ? WEFT_LINK_FLOAT
                                                     : WEFT_LINK_LITERAL;
  push_type(l, slot->sub);
  return 1;
}

static bool is_number(uint8_t type) {
  return type == WEFT_FILTER_INT || type == WEFT_FILTER_FLOAT || type == WEFT_FILTER_ANY;
}

static bool is_text(uint8_t type) {
  return type == WEFT_FILTER_STRING || type == WEFT_FILTER_PATTERN || type == WEFT_FILTER_ANY;
}

static bool binary_fits(uint8_t op, uint8_t a, uint8_t b) {
  if (is_bits(op))
    return is_number(a) && is_number(b) && a != WEFT_FILTER_FLOAT && b != WEFT_FILTER_FLOAT;
  if (is_number(a) && is_number(b)) return true;
  if (op != WEFT_FILTER_OP_EQ && op != WEFT_FILTER_OP_NE) return false;
  return is_text(a) && is_text(b) && (a != WEFT_FILTER_PATTERN || b != WEFT_FILTER_PATTERN);
}

static int link_binary(struct linker* l, uint32_t i, uint8_t op) {
  uint8_t b = pop_type(l);
  uint8_t a = pop_type(l);

  if (!binary_fits(op, a, b)) return -EPROTOTYPE;
  l->out[i].op = is_bits(op) ? WEFT_LINK_BITS : WEFT_LINK_COMPARE;
  l->out[i].sub = op;
  push_type(l, WEFT_FILTER_INT);
  return 1;
}

static int link_unary(struct linker* l, uint32_t i, uint8_t op) {
  uint8_t type = pop_type(l);

  if (!is_number(type)) return -EPROTOTYPE;
  if (op == WEFT_FILTER_OP_BIT_NOT && type == WEFT_FILTER_FLOAT) return -EPROTOTYPE;
  switch (op) {
    case WEFT_FILTER_OP_PLUS:
      if (type == WEFT_FILTER_ANY) l->out[i].op = WEFT_LINK_PLUS; /* may turn out to be a string */
      push_type(l, type);
      break;
    case WEFT_FILTER_OP_NEG:
      l->out[i].op = WEFT_LINK_NEG;
      push_type(l, type);
      break;
    case WEFT_FILTER_OP_BIT_NOT:
      l->out[i].op = WEFT_LINK_BIT_NOT;
      push_type(l, WEFT_FILTER_INT);
      break;
    default:
      l->out[i].op = op == WEFT_FILTER_OP_NOT ? WEFT_LINK_NOT : WEFT_LINK_BOOL;
      push_type(l, WEFT_FILTER_INT);
      break;
  }
  return 1;
}

/* RETURN, AND_ELSE, OR_ELSE: the top of the stack as a condition. */
static int link_condition(struct linker* l, uint32_t i, const struct weft_filter_insn* insn) {
  uint8_t type = pop_type(l);
  struct weft_linked_insn test;
  struct weft_linked_insn* slot = &l->out[i];

  if (!is_number(type)) return -EPROTOTYPE;
  if (type == WEFT_FILTER_INT) {
    clear(&test);
    test.op = WEFT_LINK_RANGE_TOP;
    if (put_test(l, i, &test, true, i)) return 1; /* not in the range from 0 to 0 */
  }
  if (insn->op == WEFT_FILTER_OP_RETURN) {
    slot->op = WEFT_LINK_RETURN;
    l->reached = false;
    return 1;
  }
  slot->op = insn->op == WEFT_FILTER_OP_AND_ELSE ? WEFT_LINK_AND_ELSE : WEFT_LINK_OR_ELSE;
  slot->jt = insn->arg;
  mark(l, insn->arg, (l->types << 4) | WEFT_FILTER_INT, l->depth + 1);
  return 1;
}

static int link_insn(struct linker* l, uint32_t i) {
  struct weft_filter_insn insn = insn_at(l, i);

  if (is_constant(insn.op)) return link_constant(l, i, &insn);
  if (is_compare(insn.op) || is_bits(insn.op)) return link_binary(l, i, insn.op);
  switch (insn.op) {
    case WEFT_FILTER_OP_PUSH_SYMBOL:
      return link_symbol(l, i, &insn);
    case WEFT_FILTER_OP_RETURN:
    case WEFT_FILTER_OP_AND_ELSE:
    case WEFT_FILTER_OP_OR_ELSE:
      return link_condition(l, i, &insn);
    default:
      return link_unary(l, i, insn.op);
  }
}

/* Takes the empty slots out and lets jumps point to where their targets went. Returns how many are
 * left. An empty slot that is a target goes on at the next full one. */
static uint32_t squeeze(struct weft_linked_insn* insns, uint32_t count) {
  uint32_t i, used = 0;

  for (i = 0; i < count; i++) {
    insns[i].moved = (uint16_t)used;
    if (insns[i].op != WEFT_LINK_NONE) used++;
  }
  used = 0;
  for (i = 0; i < count; i++) {
    struct weft_linked_insn insn = insns[i];
    bool is_test = insn.op <= WEFT_LINK_RANGE_TOP;

    if (insn.op == WEFT_LINK_NONE) continue;
    if (is_test || insn.op == WEFT_LINK_AND_ELSE || insn.op == WEFT_LINK_OR_ELSE)
      if (insn.jt < WEFT_LINK_REJECT) insn.jt = insns[insn.jt].moved;
    if (is_test && insn.jf < WEFT_LINK_REJECT) insn.jf = insns[insn.jf].moved;
    insn.moved = 0;
    insns[used++] = insn;
  }
  return used;
}

static int link_all(struct linker* l) {
  uint32_t i;
  int done;

  for (i = 0; i < l->head.insn_count; i++) clear(&l->out[i]);
  l->types = 0;
  l->depth = 0;
  l->reached = true;
  for (i = 0; i < l->head.insn_count; i += (uint32_t)done) {
    done = 1;
    if (is_target(l, i)) {
      l->types = l->reached ? join(l->types, l->out[i].a) : l->out[i].a;
      l->depth = l->out[i].size;
      l->reached = true;
    }
    clear(&l->out[i]);
    if (!l->reached) continue;
    done = link_insn(l, i);
    if (done < 0) return done;
  }
  return 0;
}

uint32_t weft_filter_link_bound(const void* program) {
  struct weft_filter_program head;

  WEFT_READ(head, program);
  return (uint32_t)sizeof(struct weft_linked_filter) +
         head.insn_count * (uint32_t)sizeof(struct weft_linked_insn) + head.literal_bytes;
}

int weft_filter_link(const void* program, uint32_t available, const void* desc,
                     const struct weft_description_layout* layout,
                     const struct weft_filter_contexts* contexts, void* out, uint32_t out_size) {
  struct weft_linked_filter* linked = (struct weft_linked_filter*)out;
  struct linker l;
  uint32_t i;
  char* literals;
  int error = weft_filter_validate(program, available);

  if (error) return error;
  if (!out) return (int)weft_filter_link_bound(program);
  if (out_size < weft_filter_link_bound(program)) return -ENOSPC;
  WEFT_READ(l.head, program);
  l.symbols = (const char*)program + sizeof(l.head);
  l.insns = l.symbols + l.head.symbol_count * sizeof(struct weft_filter_symbol);
  l.literals = l.insns + l.head.insn_count * sizeof(struct weft_filter_insn);
  l.scope.desc = desc;
  l.scope.layout = layout;
  l.scope.contexts = contexts;
  l.scope.reads = 0;
  l.out = linked->insns;
  error = link_all(&l);
  if (error) return error;
  linked->insn_count = (uint16_t)squeeze(linked->insns, l.head.insn_count);
  linked->literals_offset =
      (uint32_t)sizeof(*linked) + linked->insn_count * (uint32_t)sizeof(struct weft_linked_insn);
  linked->size = linked->literals_offset + l.head.literal_bytes;
  linked->reads = (uint16_t)l.scope.reads;
  linked->reserved = 0;
  linked->contexts = contexts;
  linked->reserved1 = 0;
  literals = (char*)out + linked->literals_offset;
  for (i = 0; i < l.head.literal_bytes; i++) literals[i] = l.literals[i];
  return (int)linked->size;
}

uint32_t weft_filter_reads(const struct weft_linked_filter* filter) { return filter->reads; }
