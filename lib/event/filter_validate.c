/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only */
/* Proves that foreign bytes are a filter program (rules 1 to 3 of lib/abi/filter.h). */
#include "lib/event/filter.h"
#include "lib/event/freestanding.h"

/* What an operation takes from the stack and leaves there. If `known` is zero, there is no such
 * operation. */
struct stack_effect {
  uint8_t known;
  uint8_t takes;
  uint8_t leaves;
};

static const struct stack_effect effects[WEFT_FILTER_OP_COUNT] = {
    [WEFT_FILTER_OP_RETURN] = {1, 1, 0},       [WEFT_FILTER_OP_PUSH_INT] = {1, 0, 1},
    [WEFT_FILTER_OP_PUSH_FLOAT] = {1, 0, 1},   [WEFT_FILTER_OP_PUSH_STRING] = {1, 0, 1},
    [WEFT_FILTER_OP_PUSH_PATTERN] = {1, 0, 1}, [WEFT_FILTER_OP_PUSH_SYMBOL] = {1, 0, 1},
    [WEFT_FILTER_OP_NEG] = {1, 1, 1},          [WEFT_FILTER_OP_PLUS] = {1, 1, 1},
    [WEFT_FILTER_OP_NOT] = {1, 1, 1},          [WEFT_FILTER_OP_BIT_NOT] = {1, 1, 1},
    [WEFT_FILTER_OP_SHL] = {1, 2, 1},          [WEFT_FILTER_OP_SHR] = {1, 2, 1},
    [WEFT_FILTER_OP_AND] = {1, 2, 1},          [WEFT_FILTER_OP_XOR] = {1, 2, 1},
    [WEFT_FILTER_OP_OR] = {1, 2, 1},           [WEFT_FILTER_OP_EQ] = {1, 2, 1},
    [WEFT_FILTER_OP_NE] = {1, 2, 1},           [WEFT_FILTER_OP_LT] = {1, 2, 1},
    [WEFT_FILTER_OP_LE] = {1, 2, 1},           [WEFT_FILTER_OP_GT] = {1, 2, 1},
    [WEFT_FILTER_OP_GE] = {1, 2, 1},           [WEFT_FILTER_OP_AND_ELSE] = {1, 1, 0},
    [WEFT_FILTER_OP_OR_ELSE] = {1, 1, 0},      [WEFT_FILTER_OP_BOOL] = {1, 1, 1},
};

/* Is a literal or name inside the literals, and without a NUL? */
static bool text_fits(const char* literals, uint32_t literal_bytes, uint64_t offset,
                      uint32_t size) {
  uint32_t i;

  if (offset > literal_bytes || size > literal_bytes - (uint32_t)offset) return false;
  for (i = 0; i < size; i++)
    if (literals[(uint32_t)offset + i] == 0) return false;
  return true;
}

static int check_header(const struct weft_filter_program* head, uint32_t available) {
  uint64_t size = sizeof(*head);

  if (head->magic != WEFT_FILTER_MAGIC) return -EINVAL;
  if (head->version != WEFT_FILTER_VERSION) return -EOPNOTSUPP;
  if (head->features & ~(uint32_t)WEFT_FILTER_FEATURE_FLOAT) return -EOPNOTSUPP;
#ifdef WEFT_FILTER_NO_FLOAT
  if (head->features & WEFT_FILTER_FEATURE_FLOAT) return -EOPNOTSUPP;
#endif
  if (head->header_size != sizeof(*head) || head->reserved0 != 0 || head->reserved1 != 0)
    return -EINVAL;
  if (head->insn_count == 0 || head->insn_count > WEFT_FILTER_MAX_INSNS ||
      head->symbol_count > WEFT_FILTER_MAX_SYMBOLS || head->max_stack > WEFT_FILTER_MAX_STACK ||
      head->literal_bytes > WEFT_FILTER_MAX_LITERAL_BYTES)
    return -EINVAL;
  size += head->symbol_count * (uint64_t)sizeof(struct weft_filter_symbol);
  size += head->insn_count * (uint64_t)sizeof(struct weft_filter_insn);
  size += head->literal_bytes;
  if (head->size != size || head->size > WEFT_FILTER_MAX_BYTES || head->size > available)
    return -EINVAL;
  return 0;
}

static bool symbol_fits(const struct weft_filter_symbol* symbol, const char* literals,
                        uint32_t literal_bytes) {
  if (symbol->kind < WEFT_FILTER_SYMBOL_FIELD || symbol->kind > WEFT_FILTER_SYMBOL_APP)
    return false;
  if (symbol->flags & ~WEFT_FILTER_SYMBOL_INDEX) return false;
  if (symbol->flags != 0 && symbol->kind != WEFT_FILTER_SYMBOL_FIELD) return false;
  if (symbol->flags == 0 && symbol->index != 0) return false;
  if (symbol->name_size == 0) return false;
  return text_fits(literals, literal_bytes, symbol->name_offset, symbol->name_size);
}

/* Operands: only those of the operation, and within bounds. */
static bool operands_fit(const struct weft_filter_insn* insn,
                         const struct weft_filter_program* head, const char* literals,
                         uint32_t at) {
  bool has_arg = false, has_imm = false, has_size = false;

  switch (insn->op) {
    case WEFT_FILTER_OP_PUSH_INT:
      has_imm = true;
      break;
    case WEFT_FILTER_OP_PUSH_FLOAT:
      if (!(head->features & WEFT_FILTER_FEATURE_FLOAT)) return false;
      has_imm = true;
      break;
    case WEFT_FILTER_OP_PUSH_STRING:
    case WEFT_FILTER_OP_PUSH_PATTERN:
      if (!text_fits(literals, head->literal_bytes, insn->imm, insn->size)) return false;
      has_imm = true;
      has_size = true;
      break;
    case WEFT_FILTER_OP_PUSH_SYMBOL:
      if (insn->arg >= head->symbol_count) return false;
      has_arg = true;
      break;
    case WEFT_FILTER_OP_AND_ELSE:
    case WEFT_FILTER_OP_OR_ELSE:
      if (insn->arg <= at || insn->arg >= head->insn_count) return false;
      has_arg = true;
      break;
    default:
      break;
  }
  return insn->reserved == 0 && (has_arg || insn->arg == 0) && (has_imm || insn->imm == 0) &&
         (has_size || insn->size == 0);
}

/* Depth of the stack at each instruction; forward jumps only, so one pass sees every way to it. */
static int check_insns(const char* insns, const struct weft_filter_program* head,
                       const char* literals) {
  enum { kUnknown = 0xff };
  uint8_t depths[WEFT_FILTER_MAX_INSNS]; /* at jump targets that lie ahead */
  uint32_t i, depth = 0;

  for (i = 0; i < head->insn_count; i++) depths[i] = kUnknown;
  for (i = 0; i < head->insn_count; i++) {
    struct weft_filter_insn insn;
    const struct stack_effect* effect;

    WEFT_READ(insn, insns + i * sizeof(insn));
    if (insn.op >= WEFT_FILTER_OP_COUNT) return -EOPNOTSUPP;
    effect = &effects[insn.op];
    if (!effect->known || !operands_fit(&insn, head, literals, i)) return -EINVAL;
    if (depths[i] != kUnknown && depths[i] != depth) return -EINVAL;
    if (depth < effect->takes) return -EINVAL;
    if (insn.op == WEFT_FILTER_OP_AND_ELSE || insn.op == WEFT_FILTER_OP_OR_ELSE) {
      if (depths[insn.arg] != kUnknown && depths[insn.arg] != depth) return -EINVAL;
      depths[insn.arg] = (uint8_t)depth;
    }
    if ((insn.op == WEFT_FILTER_OP_RETURN) != (i + 1u == head->insn_count)) return -EINVAL;
    if (insn.op == WEFT_FILTER_OP_RETURN && depth != 1) return -EINVAL;
    depth = depth - effect->takes + effect->leaves;
    if (depth > head->max_stack) return -EINVAL;
  }
  return 0;
}

int weft_filter_validate(const void* program, uint32_t available) {
  const char* bytes = (const char*)program;
  struct weft_filter_program head;
  const char *insns, *literals;
  uint32_t i;
  int error;

  if (available < sizeof(head)) return -EINVAL;
  WEFT_READ(head, bytes);
  error = check_header(&head, available);
  if (error) return error;
  insns = bytes + sizeof(head) + head.symbol_count * sizeof(struct weft_filter_symbol);
  literals = insns + head.insn_count * sizeof(struct weft_filter_insn);
  for (i = 0; i < head.symbol_count; i++) {
    struct weft_filter_symbol symbol;

    WEFT_READ(symbol, bytes + sizeof(head) + i * sizeof(symbol));
    if (!symbol_fits(&symbol, literals, head.literal_bytes)) return -EINVAL;
  }
  return check_insns(insns, &head, literals);
}
