/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only */
/* Proves that foreign bytes are a fetch program for one event; see fetch_validate.h. */
#include "lib/event/fetch_validate.h"

#include "lib/event/freestanding.h"

/* The operands of an operation. If `known` is zero, there is no such operation. All other operands
 * must be zero. */
struct operands {
  uint8_t known;
  uint8_t arg;
  uint8_t size;
  uint8_t offset;
  uint8_t limit;
  uint8_t flags; /* enum weft_fetch_flag */
};

#define READS_ (WEFT_FETCH_TRUSTED | WEFT_FETCH_USER)
static const struct operands operands[WEFT_FETCH_UNIX_PATH + 1] = {
    [WEFT_FETCH_ARG] = {1, 1, 1, 0, 0, WEFT_FETCH_SIGNED | WEFT_FETCH_KEEP_OTHER},
    [WEFT_FETCH_LOAD] = {1, 0, 1, 1, 0, WEFT_FETCH_SIGNED | READS_},
    [WEFT_FETCH_ADD] = {1, 0, 0, 1, 0, 0},
    [WEFT_FETCH_BITS] = {1, 0, 1, 1, 0, WEFT_FETCH_SIGNED},
    [WEFT_FETCH_COUNT] = {1, 0, 0, 0, 0, 0},
    [WEFT_FETCH_TASK] = {1, 0, 0, 0, 0, 0},
    [WEFT_FETCH_REG] = {1, 1, 1, 0, 0, WEFT_FETCH_SIGNED},
    [WEFT_FETCH_WITHIN] = {1, 0, 0, 1, 0, 0},
    [WEFT_FETCH_STORE] = {1, 0, 1, 0, 0, WEFT_FETCH_USER},
    [WEFT_FETCH_BYTES] = {1, 0, 1, 1, 0, READS_},
    [WEFT_FETCH_STRING] = {1, 0, 0, 1, 1, WEFT_FETCH_USER},
    [WEFT_FETCH_SEQUENCE] = {1, 1, 1, 1, 1, WEFT_FETCH_USER},
    [WEFT_FETCH_GATHER] = {1, 1, 1, 1, 1, WEFT_FETCH_USER},
    [WEFT_FETCH_UNIX_PATH] = {1, 0, 0, 1, 1, WEFT_FETCH_USER},
};

/* The content of A at a point of the program. */
enum value {
  VALUE_OTHER,    /* nothing yet, or loaded, or cut */
  VALUE_ARGUMENT, /* a whole argument */
  VALUE_INSIDE,   /* the same, and an offset */
};

struct check {
  uint32_t kind;
  uint32_t args;   /* that events of this kind have */
  uint32_t fields; /* made so far */
  enum value value;
  bool counted;  /* N was set */
  bool complete; /* the last operation made a field */
  struct weft_fetch_needs needs;
};

uint32_t weft_fetch_arg_count(uint32_t kind) {
  switch (kind) {
    case WEFT_KERNEL_TRACEPOINT:
      return WEFT_FETCH_MAX_ARGS;
    case WEFT_KERNEL_SYSCALL_ENTRY:
    case WEFT_KERNEL_KPROBE:
    case WEFT_KERNEL_UPROBE:
      return 7;
    case WEFT_KERNEL_SYSCALL_EXIT:
      return 8;
    case WEFT_KERNEL_KRETPROBE:
    case WEFT_KERNEL_URETPROBE:
      return 9;
    case WEFT_KERNEL_STATE:
      return 6;
    default:
      return 0;
  }
}

static bool has_registers(uint32_t kind) {
  return kind == WEFT_KERNEL_UPROBE || kind == WEFT_KERNEL_URETPROBE;
}

static bool is_word(uint8_t size) { return size == 1 || size == 2 || size == 4 || size == 8; }

/* Operands that are there are within bounds, others are zero. */
static int check_operands(const struct weft_fetch_op* op) {
  const struct operands* has;

  if (op->code > WEFT_FETCH_UNIX_PATH || !operands[op->code].known) return -EOPNOTSUPP;
  has = &operands[op->code];
  if (op->flags & ~(WEFT_FETCH_SIGNED | READS_ | WEFT_FETCH_KEEP_OTHER)) return -EOPNOTSUPP;
  if (op->reserved != 0 || (op->flags & ~has->flags) || (op->flags & READS_) == READS_)
    return -EINVAL;
  if ((!has->arg && op->arg != 0) || (!has->size && op->size != 0) ||
      (!has->offset && op->offset != 0) || (!has->limit && op->limit != 0))
    return -EINVAL;
  if (has->limit && (op->limit == 0 || op->limit > WEFT_FETCH_MAX_STRING)) return -EINVAL;
  switch (op->code) {
    case WEFT_FETCH_BITS:
      return op->size >= 1 && op->offset >= 0 && op->offset < 64 && op->size <= 64 - op->offset
                 ? 0
                 : -EINVAL;
    case WEFT_FETCH_BYTES:
      return op->size >= 1 && op->size <= WEFT_INLINE_ARRAY_MAX ? 0 : -EINVAL;
    case WEFT_FETCH_SEQUENCE:
      if (op->arg != 0 && op->limit > op->size * WEFT_FETCH_MAX_PARTS) return -EINVAL;
      return is_word(op->size) && op->limit % op->size == 0 ? 0 : -EINVAL;
    case WEFT_FETCH_GATHER:
      return (op->size == 4 || op->size == 8) && op->flags == WEFT_FETCH_USER ? 0 : -EINVAL;
    case WEFT_FETCH_WITHIN:
      return op->offset >= 0 ? 0 : -EINVAL;
    case WEFT_FETCH_UNIX_PATH:
      return op->offset >= 0 && op->flags == WEFT_FETCH_USER ? 0 : -EINVAL;
    default:
      return !has->size || is_word(op->size) ? 0 : -EINVAL;
  }
}

static bool trust_fits(const struct check* c, const struct weft_fetch_op* op) {
  const bool trusted = c->kind == WEFT_KERNEL_TRACEPOINT || c->kind == WEFT_KERNEL_STATE;

  if (op->code == WEFT_FETCH_TASK) return trusted && c->value == VALUE_ARGUMENT;
  if (op->flags & WEFT_FETCH_TRUSTED) return trusted && c->value != VALUE_OTHER;
  return !(op->flags & WEFT_FETCH_USER) || c->kind != WEFT_KERNEL_STATE;
}

static void note_reads(struct check* c, const struct weft_fetch_op* op) {
  if (op->code != WEFT_FETCH_LOAD && op->code != WEFT_FETCH_BYTES &&
      op->code != WEFT_FETCH_STRING && op->code != WEFT_FETCH_SEQUENCE &&
      op->code != WEFT_FETCH_GATHER && op->code != WEFT_FETCH_UNIX_PATH)
    return;
  if (op->flags & WEFT_FETCH_USER)
    c->needs.uses |= WEFT_FETCH_USES_USER;
  else if (!(op->flags & WEFT_FETCH_TRUSTED))
    c->needs.uses |= WEFT_FETCH_USES_KERNEL;
}

/* Checks an operation that makes no field. */
static int check_step(struct check* c, const struct weft_fetch_op* op) {
  c->complete = false;
  switch (op->code) {
    case WEFT_FETCH_ARG:
      if (op->arg >= c->args) return -EINVAL;
      c->needs.args |= 1u << op->arg;
      c->value = op->size == 8 ? VALUE_ARGUMENT : VALUE_OTHER;
      return 0;
    case WEFT_FETCH_REG:
      if (!has_registers(c->kind) ||
          (op->arg >= WEFT_FETCH_REGISTERS && op->arg != WEFT_FETCH_REG_ZERO))
        return -EINVAL;
      c->needs.uses |= WEFT_FETCH_USES_REGISTERS;
      c->value = VALUE_OTHER;
      return 0;
    case WEFT_FETCH_ADD:
      if (c->value == VALUE_ARGUMENT) c->value = VALUE_INSIDE;
      return 0;
    case WEFT_FETCH_COUNT:
      c->counted = true;
      return 0;
    case WEFT_FETCH_TASK:
      c->needs.uses |= WEFT_FETCH_USES_TASK;
      return 0;
    case WEFT_FETCH_WITHIN:
      return c->counted ? 0 : -EINVAL;
    default: /* LOAD, BITS */
      c->value = VALUE_OTHER;
      return 0;
  }
}

/* Does the operation make this field? */
static bool makes(const struct check* c, const struct weft_fetch_op* op,
                  const struct weft_description_field* field) {
  switch (field->kind) {
    case WEFT_FIELD_KIND_INTEGER:
    case WEFT_FIELD_KIND_ENUM:
      return op->code == WEFT_FETCH_STORE && op->size == field->elem_size;
    case WEFT_FIELD_KIND_ARRAY:
      return op->code == WEFT_FETCH_BYTES && (field->flags & WEFT_FIELD_INLINE) &&
             op->size == field->fixed_bytes;
    case WEFT_FIELD_KIND_STRING:
      return op->code == WEFT_FETCH_STRING || (op->code == WEFT_FETCH_UNIX_PATH && c->counted);
    case WEFT_FIELD_KIND_SEQUENCE:
      if (op->code == WEFT_FETCH_GATHER) return field->elem_size == 1 && c->counted;
      return op->code == WEFT_FETCH_SEQUENCE && op->size == field->elem_size && c->counted;
    default:
      return false;
  }
}

static int check_output(struct check* c, const struct weft_fetch_op* op, const void* desc,
                        const struct weft_description_layout* layout) {
  struct weft_description_field field;

  if (weft_description_field_at(desc, layout, c->fields, &field) || !makes(c, op, &field))
    return -EINVAL;
  if (op->code == WEFT_FETCH_GATHER && op->arg != WEFT_FETCH_NO_ARG) {
    if (op->arg >= c->args) return -EINVAL;
    c->needs.args |= 1u << op->arg;
  }
  c->fields++;
  c->complete = true;
  if (field.flags & WEFT_FIELD_NOWRITE)
    c->needs.nowrite_segment_bytes += op->limit;
  else
    c->needs.segment_bytes += op->limit;
  return 0;
}

static bool layout_fits(const struct weft_description_layout* layout) {
  /* Each of the two is at most WEFT_EVENT_MAX_FIELDS * WEFT_INLINE_ARRAY_MAX, so their sum does not
   * overflow. */
  return layout->fixed_size + layout->nowrite_size <= WEFT_FETCH_MAX_FIXED &&
         layout->segment_count + layout->nowrite_segments <= (int)WEFT_FETCH_MAX_SEGMENTS;
}

int weft_fetch_validate(const void* ops, uint32_t count, uint32_t kind, const void* desc,
                        const struct weft_description_layout* layout,
                        struct weft_fetch_needs* out) {
  struct check c = {kind, weft_fetch_arg_count(kind), 0, VALUE_OTHER, false, true, {0, 0, 0, 0}};
  uint32_t i;

  if (c.args == 0 || count > WEFT_FETCH_MAX_OPS || !layout_fits(layout)) return -EINVAL;
  for (i = 0; i < count; i++) {
    struct weft_fetch_op op;
    int error;

    WEFT_READ(op, (const char*)ops + i * sizeof(op));
    error = check_operands(&op);
    if (error) return error;
    if (!trust_fits(&c, &op)) return -EINVAL;
    note_reads(&c, &op);
    error = op.code < WEFT_FETCH_STORE ? check_step(&c, &op) : check_output(&c, &op, desc, layout);
    if (error) return error;
  }
  if (!c.complete || c.fields != layout->field_count ||
      c.needs.segment_bytes + c.needs.nowrite_segment_bytes > WEFT_FETCH_MAX_BYTES)
    return -EINVAL;
  *out = c.needs;
  return 0;
}
