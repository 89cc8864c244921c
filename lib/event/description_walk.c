/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only */
/* Checks a description once, then finds fields in it; see description_walk.h. */
#include "lib/event/description_walk.h"

#include "lib/event/freestanding.h"

/* The position of the walk. The image's layout is the sum of the fields before it. */
struct cursor {
  uint32_t at;         /* of the next field's description */
  uint32_t fixed[2];   /* bytes so far: recorded, nowrite */
  uint32_t segment[2]; /* segments so far: recorded, nowrite */
};

/* Is there text of name_size - 1 bytes without a NUL, then a NUL? */
static bool text_is_whole(const char* text, uint32_t size_with_nul) {
  uint32_t i;

  if (size_with_nul == 0 || text[size_with_nul - 1] != 0) return false;
  for (i = 0; i + 1 < size_with_nul; i++)
    if (text[i] == 0) return false;
  return true;
}

static bool is_elem_size(uint8_t size, bool is_float) {
  if (is_float) return size == 4 || size == 8;
  return size == 1 || size == 2 || size == 4 || size == 8;
}

/* Do the mappings of an enum lie within [at, end)? */
static bool mappings_fit(const char* bytes, uint32_t at, uint32_t end, uint32_t count) {
  struct weft_enum_mapping mapping;
  uint32_t i;

  for (i = 0; i < count; i++) {
    if (end - at < sizeof(mapping)) return false;
    WEFT_READ(mapping, bytes + at);
    if (mapping.size <= sizeof(mapping) || mapping.size > end - at || mapping.reserved != 0)
      return false;
    if (!text_is_whole(bytes + at + sizeof(mapping), mapping.size - (uint32_t)sizeof(mapping)))
      return false;
    at += mapping.size;
  }
  return true;
}

/* Checks the rules of a kind beyond those of all fields. */
static bool kind_fits(const struct weft_field_desc* field) {
  bool float_elements = (field->flags & WEFT_FIELD_FLOAT_ELEMENTS) != 0;
  bool is_text = (field->flags & WEFT_FIELD_TEXT) != 0;

  switch (field->kind) {
    case WEFT_FIELD_KIND_INTEGER:
      return is_elem_size(field->elem_size, false) && field->count == 0;
    case WEFT_FIELD_KIND_ENUM:
      return is_elem_size(field->elem_size, false);
    case WEFT_FIELD_KIND_FLOAT:
      return is_elem_size(field->elem_size, true) && field->count == 0;
    case WEFT_FIELD_KIND_STRING:
      return field->elem_size <= 1 && field->count == 0;
    case WEFT_FIELD_KIND_SEQUENCE:
      return is_elem_size(field->elem_size, float_elements) && field->count == 0 &&
             is_elem_size(field->length_size, false) && (!is_text || field->elem_size == 1);
    case WEFT_FIELD_KIND_ARRAY: {
      uint64_t bytes = (uint64_t)field->count * field->elem_size;

      if (!is_elem_size(field->elem_size, float_elements) || (is_text && field->elem_size != 1))
        return false;
      if (field->flags & WEFT_FIELD_INLINE) return bytes <= WEFT_INLINE_ARRAY_MAX;
      return bytes <= 0xffffffffu;
    }
    default:
      return false;
  }
}

static bool base_fits(uint8_t base) {
  return base == 0 || base == 2 || base == 8 || base == 10 || base == 16;
}

/* Checks the field description at c->at. */
static bool field_fits(const char* bytes, uint32_t end, const struct cursor* c) {
  struct weft_field_desc field;
  uint32_t names_end;

  if (end - c->at < sizeof(field)) return false;
  WEFT_READ(field, bytes + c->at);
  if (field.size < sizeof(field) || field.size > end - c->at) return false;
  if (field.name_size < 2 || field.name_size > WEFT_EVENT_NAME_MAX) return false;
  if (field.name_size > field.size - sizeof(field)) return false;
  if (!text_is_whole(bytes + c->at + sizeof(field), field.name_size)) return false;
  if (!kind_fits(&field) || !base_fits(field.base) || (field.flags & 0x80)) return false;
  if (field.kind != WEFT_FIELD_KIND_ENUM) return true;
  names_end = c->at + (uint32_t)sizeof(field) + field.name_size;
  return mappings_fit(bytes, names_end, c->at + field.size, field.count);
}

/* Adds what the field at c->at puts into the image, fills *out (offsets of a nowrite field from the
 * start of the nowrite part), and steps to the next field. */
static void step(const char* bytes, struct cursor* c, struct weft_description_field* out) {
  struct weft_field_desc field;
  uint32_t part;

  WEFT_READ(field, bytes + c->at);
  part = (field.flags & WEFT_FIELD_NOWRITE) ? 1 : 0;
  out->name = bytes + c->at + sizeof(field);
  out->name_size = field.name_size - 1u;
  out->count = field.count;
  out->kind = field.kind;
  out->flags = field.flags;
  out->elem_size = field.elem_size;
  out->reserved = 0;
  out->fixed_offset = c->fixed[part];
  out->segment = WEFT_NO_SEGMENT;
  switch (field.kind) {
    case WEFT_FIELD_KIND_STRING:
    case WEFT_FIELD_KIND_SEQUENCE:
      out->fixed_bytes = 4;
      out->segment = c->segment[part]++;
      break;
    case WEFT_FIELD_KIND_ARRAY:
      out->fixed_bytes = 0;
      if (field.flags & WEFT_FIELD_INLINE)
        out->fixed_bytes = field.count * field.elem_size;
      else
        out->segment = c->segment[part]++;
      break;
    default:
      out->fixed_bytes = field.elem_size;
      break;
  }
  c->fixed[part] += out->fixed_bytes;
  c->at += field.size;
}

static uint32_t first_field(const struct weft_event_desc* head) {
  return (uint32_t)sizeof(*head) + head->name_size + head->uri_size;
}

int weft_description_check(const void* desc, uint32_t available,
                           struct weft_description_layout* out) {
  const char* bytes = (const char*)desc;
  struct weft_event_desc head;
  struct weft_description_field field;
  struct cursor c = {0, {0, 0}, {0, 0}};
  uint32_t i;

  if (available < sizeof(head)) return -EINVAL;
  WEFT_READ(head, bytes);
  if (head.size < sizeof(head) || head.size > available || head.size > WEFT_EVENT_DESC_MAX_BYTES)
    return -EINVAL;
  if (head.version != WEFT_EVENT_DESC_VERSION || head.reserved[0] != 0 || head.reserved[1] != 0)
    return -EINVAL;
  if (head.name_size < 2 || head.name_size > WEFT_EVENT_NAME_MAX ||
      head.field_count > WEFT_EVENT_MAX_FIELDS || first_field(&head) > head.size)
    return -EINVAL;
  if (!text_is_whole(bytes + sizeof(head), head.name_size)) return -EINVAL;
  if (head.uri_size != 0 && !text_is_whole(bytes + sizeof(head) + head.name_size, head.uri_size))
    return -EINVAL;
  c.at = first_field(&head);
  for (i = 0; i < head.field_count; i++) {
    if (!field_fits(bytes, head.size, &c)) return -EINVAL;
    step(bytes, &c, &field);
  }
  out->size = head.size;
  out->fixed_size = c.fixed[0];
  out->nowrite_size = c.fixed[1];
  out->segment_count = (uint16_t)c.segment[0];
  out->nowrite_segments = (uint16_t)c.segment[1];
  out->field_count = head.field_count;
  out->reserved = 0;
  out->loglevel = head.loglevel;
  out->name = bytes + sizeof(head);
  return 0;
}

/* Nowrite fields stand behind all recorded ones. */
static void place(const struct weft_description_layout* layout, struct weft_description_field* f) {
  if (!(f->flags & WEFT_FIELD_NOWRITE)) return;
  f->fixed_offset += layout->fixed_size;
  if (f->segment != WEFT_NO_SEGMENT) f->segment += layout->segment_count;
}

static struct cursor start(const void* desc) {
  struct weft_event_desc head;
  struct cursor c = {0, {0, 0}, {0, 0}};

  WEFT_READ(head, desc);
  c.at = first_field(&head);
  return c;
}

int weft_description_find(const void* desc, const struct weft_description_layout* layout,
                          const char* name, uint32_t name_size,
                          struct weft_description_field* out) {
  struct cursor c = start(desc);
  uint32_t i;

  for (i = 0; i < layout->field_count; i++) {
    step((const char*)desc, &c, out);
    if (out->name_size == name_size && weft_bytes_equal(out->name, name, name_size)) {
      place(layout, out);
      return 0;
    }
  }
  return -ENOENT;
}

int weft_description_field_at(const void* desc, const struct weft_description_layout* layout,
                              uint32_t index, struct weft_description_field* out) {
  struct cursor c = start(desc);
  uint32_t i;

  if (index >= layout->field_count) return -ENOENT;
  for (i = 0; i <= index; i++) step((const char*)desc, &c, out);
  place(layout, out);
  return 0;
}
