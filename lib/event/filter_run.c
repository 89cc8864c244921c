/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only */
/*
 * Executes linked filters (filter_linked.h). Called at every event of a rule with a filter, mostly
 * to say no: weft_filter_run does tests alone, without a stack; the first instruction that needs
 * one goes to run_with_stack.
 */
#include "lib/event/filter_number.h"
#include "lib/event/match.h"

/* One evaluation. */
struct run {
  const struct weft_linked_filter* filter;
  const char* fixed;
  const struct weft_segment* segments;
  void* context_arg;
};

enum outcome { NO = 0, YES = 1, UNDEFINED = 2 }; /* undefined: the whole filter is false */

struct text {
  const char* bytes;
  uint32_t size; /* at most; a NUL may come before */
};

static const char* literal(const struct run* r, uint64_t offset) {
  return (const char*)r->filter + r->filter->literals_offset + offset;
}

static bool load_text(const struct run* r, const struct weft_linked_insn* insn, struct text* text) {
  const struct weft_segment* segment;

  if (insn->sub == WEFT_TEXT_INLINE) {
    text->bytes = r->fixed + insn->offset;
    text->size = insn->size;
    return true;
  }
  segment = &r->segments[insn->segment];
  text->size = insn->size;
  if (insn->sub == WEFT_TEXT_COUNTED) WEFT_READ(text->size, r->fixed + insn->offset);
  if (text->size > segment->size) text->size = segment->size;
  text->bytes = (const char*)segment->data;
  return text->bytes || text->size == 0;
}

static bool text_equals(struct text text, const char* wanted, uint32_t size) {
  if (text.size < size || !weft_bytes_equal(text.bytes, wanted, size)) return false;
  return text.size == size || text.bytes[size] == 0;
}

static uint32_t size_up_to_nul(struct text text) {
  uint32_t size = 0;

  while (size < text.size && text.bytes[size] != 0) size++;
  return size;
}

static enum outcome test_text(const struct run* r, const struct weft_linked_insn* insn) {
  const char* wanted = literal(r, insn->a);
  uint32_t size = (uint32_t)insn->b;
  struct text text;

  if (!load_text(r, insn, &text)) return UNDEFINED;
  switch (insn->op) {
    case WEFT_LINK_TEXT_EQUAL:
      return text_equals(text, wanted, size) ? YES : NO;
    case WEFT_LINK_TEXT_PREFIX:
      return text.size >= size && weft_bytes_equal(text.bytes, wanted, size) ? YES : NO;
    default:
      return weft_glob_match(wanted, size, text.bytes, size_up_to_nul(text)) ? YES : NO;
  }
}

/* Kernels make indirect calls dear: weft.ko names the one function that it has. */
#ifdef __KERNEL__
#define WEFT_FILTER_FETCH(contexts, arg, number, value) \
  weft_filter_context_fetch(arg, number, value)
#else
#define WEFT_FILTER_FETCH(contexts, arg, number, value) (contexts)->fetch(arg, number, value)
#endif

/* Fetches the context of an instruction, whose type is `sub`. */
static bool fetch(const struct run* r, const struct weft_linked_insn* insn,
                  struct weft_filter_value* value) {
  value->bits = 0;
  value->text = 0;
  value->size = 0;
  value->type = 0;
  if (WEFT_FILTER_FETCH(r->filter->contexts, r->context_arg, insn->size, value) < 0) return false;
  if (insn->sub != WEFT_FILTER_ANY && value->type != insn->sub) return false;
#ifndef WEFT_FILTER_NO_FLOAT
  if (value->type == WEFT_FILTER_FLOAT) return true;
#endif
  if (value->type == WEFT_FILTER_STRING) return value->text || value->size == 0;
  return value->type == WEFT_FILTER_INT;
}

static enum outcome test_context(const struct run* r, const struct weft_linked_insn* insn) {
#ifdef __KERNEL__
  uint64_t bits = weft_filter_context_int(r->context_arg, insn->size);

  return bits - insn->a <= insn->b ? YES : NO;
#else
  struct weft_filter_value value;

  if (!fetch(r, insn, &value)) return UNDEFINED;
  return value.bits - insn->a <= insn->b ? YES : NO;
#endif
}

/* Runs any test but RANGE_TOP. */
static inline __attribute__((always_inline)) enum outcome test(
    const struct run* r, const struct weft_linked_insn* insn) {
#define RANGE(load)            \
  case WEFT_LINK_RANGE + load: \
    return weft_load_int(load, r->fixed + insn->offset) - insn->a <= insn->b ? YES : NO

  switch (insn->op) {
    RANGE(WEFT_LOAD_U8);
    RANGE(WEFT_LOAD_S8);
    RANGE(WEFT_LOAD_U16);
    RANGE(WEFT_LOAD_S16);
    RANGE(WEFT_LOAD_U32);
    RANGE(WEFT_LOAD_S32);
    RANGE(WEFT_LOAD_64);
    RANGE(WEFT_LOAD_U16_SWAP);
    RANGE(WEFT_LOAD_S16_SWAP);
    RANGE(WEFT_LOAD_U32_SWAP);
    RANGE(WEFT_LOAD_S32_SWAP);
    RANGE(WEFT_LOAD_64_SWAP);
#undef RANGE
    case WEFT_LINK_RANGE_CONTEXT:
      return test_context(r, insn);
#ifndef WEFT_FILTER_NO_FLOAT
    case WEFT_LINK_FLOAT_COMPARE:
      return weft_compare_float((uint8_t)insn->size,
                                weft_load_float(insn->sub, r->fixed + insn->offset),
                                weft_double_of_bits(insn->a))
                 ? YES
                 : NO;
#endif
    default:
      return test_text(r, insn);
  }
}

static bool is_text(const struct weft_filter_value* v) {
  return v->type == WEFT_FILTER_STRING || v->type == WEFT_FILTER_PATTERN;
}

/* Is the number not 0? */
static enum outcome truth(const struct weft_filter_value* v) {
  if (v->type == WEFT_FILTER_INT) return v->bits != 0 ? YES : NO;
#ifndef WEFT_FILTER_NO_FLOAT
  if (v->type == WEFT_FILTER_FLOAT) return weft_double_of_bits(v->bits) != 0 ? YES : NO;
#endif
  return UNDEFINED;
}

/* Are two texts the same, or does the one match the other, a pattern? */
static enum outcome same_text(const struct weft_filter_value* a,
                              const struct weft_filter_value* b) {
  struct text left = {a->text, a->size}, right = {b->text, b->size};

  left.size = size_up_to_nul(left);
  right.size = size_up_to_nul(right);
  if (a->type == WEFT_FILTER_PATTERN && b->type == WEFT_FILTER_PATTERN) return UNDEFINED;
  if (a->type == WEFT_FILTER_PATTERN)
    return weft_glob_match(left.bytes, left.size, right.bytes, right.size) ? YES : NO;
  if (b->type == WEFT_FILTER_PATTERN)
    return weft_glob_match(right.bytes, right.size, left.bytes, left.size) ? YES : NO;
  return left.size == right.size && weft_bytes_equal(left.bytes, right.bytes, left.size) ? YES : NO;
}

static enum outcome compare(uint8_t op, const struct weft_filter_value* a,
                            const struct weft_filter_value* b) {
  if (a->type == WEFT_FILTER_INT && b->type == WEFT_FILTER_INT)
    return weft_compare_int(op, (int64_t)a->bits, (int64_t)b->bits) ? YES : NO;
  if (is_text(a) && is_text(b)) {
    enum outcome same = same_text(a, b);

    if (op == WEFT_FILTER_OP_EQ || same == UNDEFINED) return same;
    if (op == WEFT_FILTER_OP_NE) return same == YES ? NO : YES;
    return UNDEFINED;
  }
#ifndef WEFT_FILTER_NO_FLOAT
  if (!is_text(a) && !is_text(b)) {
    double left =
        a->type == WEFT_FILTER_INT ? (double)(int64_t)a->bits : weft_double_of_bits(a->bits);
    double right =
        b->type == WEFT_FILTER_INT ? (double)(int64_t)b->bits : weft_double_of_bits(b->bits);

    return weft_compare_float(op, left, right) ? YES : NO;
  }
#endif
  return UNDEFINED;
}

/* Puts a number from memory into *v. */
static void load_number(uint8_t load, const char* at, struct weft_filter_value* v) {
#ifndef WEFT_FILTER_NO_FLOAT
  if (load >= WEFT_LOAD_INT_COUNT) {
    v->type = WEFT_FILTER_FLOAT;
    v->bits = weft_bits_of_double(weft_load_float(load, at));
    return;
  }
#endif
  v->type = WEFT_FILTER_INT;
  v->bits = weft_load_int(load, at);
}

static uint32_t load_bytes(uint8_t load) {
  static const uint8_t bytes[] = {1, 1, 2, 2, 4, 4, 8, 2, 2, 4, 4, 8, 4, 8, 4, 8};

  return bytes[load & 15];
}

static bool load_element(const struct run* r, const struct weft_linked_insn* insn,
                         struct weft_filter_value* v) {
  const struct weft_segment* segment = &r->segments[insn->segment];
  uint32_t count;

  if (insn->size != 0) {
    WEFT_READ(count, r->fixed + insn->offset);
    if (insn->b >= count) return false;
  }
  if (!segment->data || insn->a + load_bytes(insn->sub) > segment->size) return false;
  load_number(insn->sub, (const char*)segment->data + insn->a, v);
  return true;
}

/* Runs instructions that leave one more value on the stack. */
static bool push(const struct run* r, const struct weft_linked_insn* insn,
                 struct weft_filter_value* v) {
  struct text text;

  switch (insn->op) {
    case WEFT_LINK_INT:
    case WEFT_LINK_FLOAT:
      v->type = insn->op == WEFT_LINK_INT ? WEFT_FILTER_INT : WEFT_FILTER_FLOAT;
      v->bits = insn->a;
      return true;
    case WEFT_LINK_LITERAL:
      v->type = insn->sub;
      v->text = literal(r, insn->a);
      v->size = (uint32_t)insn->b;
      return true;
    case WEFT_LINK_LOAD:
      load_number(insn->sub, r->fixed + insn->offset, v);
      return true;
    case WEFT_LINK_ELEMENT:
      return load_element(r, insn, v);
    case WEFT_LINK_TEXT:
      if (!load_text(r, insn, &text)) return false;
      v->type = WEFT_FILTER_STRING;
      v->text = text.bytes;
      v->size = text.size;
      return true;
    default:
      return fetch(r, insn, v);
  }
}

/* Runs instructions that replace the top of the stack. */
static bool unary(const struct weft_linked_insn* insn, struct weft_filter_value* top) {
  enum outcome is_true;

  switch (insn->op) {
    case WEFT_LINK_BITS_INT:
      top->bits = weft_bits(insn->sub, top->bits, insn->a);
      return true;
    case WEFT_LINK_BIT_NOT:
      top->bits = ~top->bits;
      return top->type == WEFT_FILTER_INT;
    case WEFT_LINK_PLUS:
      return !is_text(top);
    case WEFT_LINK_NEG:
#ifndef WEFT_FILTER_NO_FLOAT
      if (top->type == WEFT_FILTER_FLOAT) {
        top->bits = weft_bits_of_double(-weft_double_of_bits(top->bits));
        return true;
      }
#endif
      top->bits = 0 - top->bits;
      return top->type == WEFT_FILTER_INT;
    default: /* NOT, BOOL */
      is_true = truth(top);
      top->type = WEFT_FILTER_INT;
      top->bits = (is_true == YES) == (insn->op == WEFT_LINK_BOOL);
      return is_true != UNDEFINED;
  }
}

/* Runs instructions that take two values and leave one, an integer. */
static bool binary(const struct weft_linked_insn* insn, struct weft_filter_value* a,
                   const struct weft_filter_value* b) {
  enum outcome result;

  if (insn->op == WEFT_LINK_COMPARE) {
    result = compare(insn->sub, a, b);
    a->type = WEFT_FILTER_INT;
    a->bits = result;
    return result != UNDEFINED;
  }
  if (a->type != WEFT_FILTER_INT || b->type != WEFT_FILTER_INT) return false;
  if ((insn->sub == WEFT_FILTER_OP_SHL || insn->sub == WEFT_FILTER_OP_SHR) && b->bits > 63)
    return false;
  a->bits = weft_bits(insn->sub, a->bits, b->bits);
  return true;
}

/* `top` points to the first free place: the validator proved that the stack holds what each
 * instruction takes, and never more than WEFT_FILTER_MAX_STACK. Every jump goes forward. */
static __attribute__((__noinline__)) bool run_with_stack(const struct run* r,
                                                         const struct weft_linked_insn* insn) {
  struct weft_filter_value stack[WEFT_FILTER_MAX_STACK];
  struct weft_filter_value* top = stack;
  enum outcome outcome;
  uint32_t next;

  for (;;) {
    switch (insn->op) {
      default:
        if (insn->op > WEFT_LINK_LAST_PLAIN_TEST) return false;
        outcome = test(r, insn);
        break;
      case WEFT_LINK_RANGE_TOP:
        top--;
        outcome = top->bits - insn->a <= insn->b ? YES : NO;
        break;
      case WEFT_LINK_INT:
      case WEFT_LINK_FLOAT:
      case WEFT_LINK_LITERAL:
      case WEFT_LINK_LOAD:
      case WEFT_LINK_ELEMENT:
      case WEFT_LINK_TEXT:
      case WEFT_LINK_CONTEXT:
        if (!push(r, insn, top)) return false;
        top++;
        insn++;
        continue;
      case WEFT_LINK_NEG:
      case WEFT_LINK_PLUS:
      case WEFT_LINK_NOT:
      case WEFT_LINK_BIT_NOT:
      case WEFT_LINK_BOOL:
      case WEFT_LINK_BITS_INT:
        if (!unary(insn, top - 1)) return false;
        insn++;
        continue;
      case WEFT_LINK_BITS:
      case WEFT_LINK_COMPARE:
        top--;
        if (!binary(insn, top - 1, top)) return false;
        insn++;
        continue;
      case WEFT_LINK_RETURN:
        return truth(top - 1) == YES;
      case WEFT_LINK_AND_ELSE:
      case WEFT_LINK_OR_ELSE:
        outcome = truth(top - 1);
        if (outcome == UNDEFINED) return false;
        if ((outcome == YES) == (insn->op == WEFT_LINK_AND_ELSE)) {
          top--;
          insn++;
        } else {
          top[-1].type = WEFT_FILTER_INT;
          top[-1].bits = outcome;
          insn = &r->filter->insns[insn->jt];
        }
        continue;
    }
    if (outcome == UNDEFINED) return false;
    next = outcome == YES ? insn->jt : insn->jf;
    if (next >= WEFT_LINK_REJECT) return next == WEFT_LINK_ACCEPT;
    insn = &r->filter->insns[next];
  }
}

/* Apart: what most filters do not need is not set up for them. */
static __attribute__((__noinline__)) bool run_tests(const struct weft_linked_filter* filter,
                                                    const struct weft_linked_insn* insn,
                                                    const void* fixed,
                                                    const struct weft_segment* segments,
                                                    void* context_arg) {
  struct run r = {filter, (const char*)fixed, segments, context_arg};
  enum outcome outcome;
  uint32_t next;

  for (;;) {
    if (WEFT_UNLIKELY(insn->op > WEFT_LINK_LAST_PLAIN_TEST)) return run_with_stack(&r, insn);
    outcome = test(&r, insn);
    if (WEFT_UNLIKELY(outcome == UNDEFINED)) return false;
    next = outcome == YES ? insn->jt : insn->jf;
    if (next >= WEFT_LINK_REJECT) return next == WEFT_LINK_ACCEPT;
    insn = &filter->insns[next];
  }
}

/* Runs what most filters begin with before anything is set up for the rest. In a kernel, that is a
 * context. It rejects most events without a search for the operation, which is slow because kernels
 * are built without jump tables. In a program it is a field that is an integer. */
#ifdef __KERNEL__
static inline __attribute__((always_inline)) bool is_first_test(
    const struct weft_linked_insn* insn) {
  return insn->op == WEFT_LINK_RANGE_CONTEXT;
}

static inline __attribute__((always_inline)) uint64_t
first_value(const struct weft_linked_insn* insn, const void* fixed, void* context_arg) {
  (void)fixed;
  return weft_filter_context_int(context_arg, insn->size);
}
#else
static inline __attribute__((always_inline)) bool is_first_test(
    const struct weft_linked_insn* insn) {
  return insn->op < WEFT_LINK_RANGE + WEFT_LOAD_INT_COUNT;
}

static inline __attribute__((always_inline)) uint64_t
first_value(const struct weft_linked_insn* insn, const void* fixed, void* context_arg) {
  (void)context_arg;
  return weft_load_int((uint8_t)(insn->op - WEFT_LINK_RANGE), (const char*)fixed + insn->offset);
}
#endif

bool weft_filter_run(const struct weft_linked_filter* filter, const void* fixed,
                     const struct weft_segment* segments, void* context_arg) {
  const struct weft_linked_insn* insn = filter->insns;

  while (WEFT_LIKELY(is_first_test(insn))) {
    const uint64_t bits = first_value(insn, fixed, context_arg);
    const uint32_t next = bits - insn->a <= insn->b ? insn->jt : insn->jf;

    if (next >= WEFT_LINK_REJECT) return next == WEFT_LINK_ACCEPT;
    insn = &filter->insns[next];
  }
  return run_tests(filter, insn, fixed, segments, context_arg);
}
