/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only */
/* See filter_symbol.h. */
#include "lib/event/filter_symbol.h"

#include "lib/event/freestanding.h"

/* Returns the enum weft_load of a number in an image. */
static uint8_t load_of(const struct weft_description_field* field, bool is_float) {
  bool network = (field->flags & WEFT_FIELD_NETWORK) != 0;
  bool swap = network && __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__;
  uint8_t is_signed = (field->flags & WEFT_FIELD_SIGNED) ? 1 : 0;

  if (is_float) {
    if (field->elem_size == 4) return swap ? WEFT_LOAD_F32_SWAP : WEFT_LOAD_F32;
    return swap ? WEFT_LOAD_F64_SWAP : WEFT_LOAD_F64;
  }
  switch (field->elem_size) {
    case 1:
      return (uint8_t)(WEFT_LOAD_U8 + is_signed);
    case 2:
      return (uint8_t)((swap ? WEFT_LOAD_U16_SWAP : WEFT_LOAD_U16) + is_signed);
    case 4:
      return (uint8_t)((swap ? WEFT_LOAD_U32_SWAP : WEFT_LOAD_U32) + is_signed);
    default:
      return swap ? WEFT_LOAD_64_SWAP : WEFT_LOAD_64;
  }
}

static int number_type(bool is_float, uint8_t* type) {
#ifdef WEFT_FILTER_NO_FLOAT
  if (is_float) return -EPROTOTYPE;
#endif
  *type = is_float ? WEFT_FILTER_FLOAT : WEFT_FILTER_INT;
  return 0;
}

static int resolve_element(const struct weft_description_field* field, uint64_t index,
                           struct weft_linked_insn* load, uint8_t* type) {
  bool is_float = (field->flags & WEFT_FIELD_FLOAT_ELEMENTS) != 0;
  bool is_array = field->kind == WEFT_FIELD_KIND_ARRAY;

  if (!is_array && field->kind != WEFT_FIELD_KIND_SEQUENCE) return -EPROTOTYPE;
  if (field->flags & WEFT_FIELD_TEXT) return -EPROTOTYPE;
  if (index > 0xffffffffu || (is_array && index >= field->count)) return -EPROTOTYPE;
  load->sub = load_of(field, is_float);
  if (field->segment == WEFT_NO_SEGMENT) {
    load->op = WEFT_LINK_LOAD;
    load->offset = (uint16_t)(field->fixed_offset + index * field->elem_size);
    return number_type(is_float, type);
  }
  load->op = WEFT_LINK_ELEMENT;
  load->segment = (uint16_t)field->segment;
  load->size = is_array ? 0 : 1;
  load->a = index * field->elem_size;
  load->b = index;
  return number_type(is_float, type);
}

static int resolve_text(const struct weft_description_field* field, struct weft_linked_insn* load,
                        uint8_t* type) {
  load->op = WEFT_LINK_TEXT;
  load->segment = (uint16_t)field->segment;
  load->size = field->count;
  if (field->kind != WEFT_FIELD_KIND_ARRAY)
    load->sub = WEFT_TEXT_COUNTED;
  else
    load->sub = field->segment == WEFT_NO_SEGMENT ? WEFT_TEXT_INLINE : WEFT_TEXT_SEGMENT;
  *type = WEFT_FILTER_STRING;
  return 0;
}

static int resolve_field(struct weft_filter_scope* scope, const struct weft_filter_symbol* symbol,
                         const char* name, struct weft_linked_insn* load, uint8_t* type) {
  struct weft_description_field field;
  int error = weft_description_find(scope->desc, scope->layout, name, symbol->name_size, &field);

  if (error) return error;
  scope->reads |= WEFT_FILTER_READS_FIELD;
  if (field.flags & WEFT_FIELD_NOWRITE) scope->reads |= WEFT_FILTER_READS_NOWRITE;
  load->offset = (uint16_t)field.fixed_offset; /* at most 512 fields of 64 bytes */
  if (symbol->flags & WEFT_FILTER_SYMBOL_INDEX)
    return resolve_element(&field, symbol->index, load, type);
  switch (field.kind) {
    case WEFT_FIELD_KIND_INTEGER:
    case WEFT_FIELD_KIND_ENUM:
    case WEFT_FIELD_KIND_FLOAT: {
      bool is_float = field.kind == WEFT_FIELD_KIND_FLOAT;

      load->op = WEFT_LINK_LOAD;
      load->sub = load_of(&field, is_float);
      return number_type(is_float, type);
    }
    case WEFT_FIELD_KIND_STRING:
      return resolve_text(&field, load, type);
    default:
      return (field.flags & WEFT_FIELD_TEXT) ? resolve_text(&field, load, type) : -EPROTOTYPE;
  }
}

static int resolve_context(struct weft_filter_scope* scope, const struct weft_filter_symbol* symbol,
                           const char* name, struct weft_linked_insn* load, uint8_t* type) {
  int number;

  *type = 0;
  if (!scope->contexts) return -ENOENT;
  number = scope->contexts->find(scope->contexts, symbol->kind, name, symbol->name_size, type);
  if (number < 0) return -ENOENT;
  switch (*type) {
    case WEFT_FILTER_FLOAT:
#ifdef WEFT_FILTER_NO_FLOAT
      return -EPROTOTYPE;
#endif
    case WEFT_FILTER_INT:
    case WEFT_FILTER_STRING:
    case WEFT_FILTER_ANY:
      break;
    default:
      return -EPROTOTYPE;
  }
  scope->reads |= WEFT_FILTER_READS_CONTEXT;
  load->op = WEFT_LINK_CONTEXT;
  load->sub = *type;
  load->size = (uint32_t)number;
  return 0;
}

int weft_filter_resolve(struct weft_filter_scope* scope, const struct weft_filter_symbol* symbol,
                        const char* name, struct weft_linked_insn* load, uint8_t* type) {
  if (symbol->kind == WEFT_FILTER_SYMBOL_FIELD)
    return resolve_field(scope, symbol, name, load, type);
  return resolve_context(scope, symbol, name, load, type);
}
