/* SPDX-License-Identifier: Apache-2.0 */
/* See runtime_provider.h. The walker (description_walk.h) checks what was written. */
#include "lib/event/runtime_provider.h"

#include <errno.h>
#include <stddef.h>

#include "lib/event/description_walk.h"
#include "lib/event/freestanding.h"

/* The output of the description. Bytes beyond its end are counted, but not written. */
struct output {
  char* bytes;
  uint64_t room;
  uint64_t used;
};

static void put(struct output* out, const void* from, uint64_t size) {
  if (out->used <= out->room && size <= out->room - out->used)
    __builtin_memcpy(out->bytes + out->used, from, size);
  out->used += size;
}

/* Returns the bytes of a text with its NUL; 0: there is no text. */
static uint64_t text_bytes(const char* text) {
  return text != NULL ? (uint64_t)weft_text_size(text) + 1 : 0;
}

static bool is_name(const char* text) {
  const uint64_t bytes = text_bytes(text);

  return bytes >= 2 && bytes <= WEFT_EVENT_NAME_MAX;
}

static uint64_t labels_bytes(const struct weft_runtime_field* field) {
  uint64_t bytes = 0;
  uint32_t i;

  for (i = 0; field->kind == WEFT_FIELD_KIND_ENUM && i < field->count; i++)
    bytes += sizeof(struct weft_enum_mapping) + text_bytes(field->labels[i].label);
  return bytes;
}

static void put_labels(struct output* out, const struct weft_runtime_field* field) {
  uint32_t i;

  for (i = 0; field->kind == WEFT_FIELD_KIND_ENUM && i < field->count; i++) {
    const struct weft_runtime_label* label = &field->labels[i];
    const uint64_t bytes = text_bytes(label->label);
    const struct weft_enum_mapping mapping = {
        .size = (uint32_t)(sizeof(mapping) + bytes), .begin = label->begin, .end = label->end};

    put(out, &mapping, sizeof(mapping));
    put(out, label->label, bytes);
  }
}

/* Returns false if a field cannot have that name. Sizes that are too large for their member are
 * refused with the whole description, which is larger than any may be. */
static bool put_field(struct output* out, const struct weft_runtime_field* field) {
  const uint64_t name_bytes = text_bytes(field->name);
  const uint64_t media_bytes = text_bytes(field->media_type);
  const struct weft_field_desc desc = {
      .size = (uint32_t)(sizeof(desc) + name_bytes + labels_bytes(field) + media_bytes),
      .kind = field->kind,
      .flags = field->flags,
      .elem_size = field->elem_size,
      .base = field->base,
      .count = field->count,
      .name_size = (uint16_t)name_bytes,
      .length_size = field->length_size,
      .length_flags = field->length_flags,
  };

  if (!is_name(field->name)) return false;
  put(out, &desc, sizeof(desc));
  put(out, field->name, name_bytes);
  put_labels(out, field);
  put(out, field->media_type, media_bytes);
  return true;
}

static void put_padding(struct output* out, uint32_t multiple) {
  while (multiple > 1 && out->used % multiple != 0) put(out, "", 1);
}

static bool put_event(struct output* out, const struct weft_runtime_event* source, uint32_t size) {
  const uint64_t name_bytes = text_bytes(source->name);
  const uint64_t uri_bytes = text_bytes(source->uri);
  const struct weft_event_desc desc = {
      .size = size,
      .version = WEFT_EVENT_DESC_VERSION,
      .field_count = (uint16_t)source->field_count,
      .loglevel = source->loglevel,
      .name_size = (uint16_t)name_bytes,
      .uri_size = (uint16_t)uri_bytes,
  };
  uint32_t i;

  if (!is_name(source->name) || uri_bytes > 0xffff || source->field_count > WEFT_EVENT_MAX_FIELDS)
    return false;
  put(out, &desc, sizeof(desc));
  put(out, source->name, name_bytes);
  put(out, source->uri, uri_bytes);
  for (i = 0; i < source->field_count; i++)
    if (!put_field(out, &source->fields[i])) return false;
  put_padding(out, source->size_multiple);
  return true;
}

/* Also computes the layout, if there is a buffer. */
static int describe(const struct weft_runtime_event* source, void* buffer, uint32_t room,
                    struct weft_description_layout* layout) {
  struct output counted = {NULL, 0, 0};
  struct output written = {(char*)buffer, room, 0};

  if (!put_event(&counted, source, 0) || counted.used > WEFT_EVENT_DESC_MAX_BYTES) return -EINVAL;
  if (buffer == NULL && room == 0) return (int)counted.used;
  if (counted.used > room) return -ENOSPC;
  (void)put_event(&written, source, (uint32_t)counted.used);
  if (weft_description_check(buffer, (uint32_t)counted.used, layout) != 0) return -EINVAL;
  return (int)counted.used;
}

int weft_runtime_describe(const struct weft_runtime_event* source, void* buffer, uint32_t room) {
  struct weft_description_layout layout;

  return describe(source, buffer, room, &layout);
}

int weft_runtime_provide(const struct weft_runtime_event* source, void* buffer, uint32_t room,
                         struct weft_event* event) {
  struct weft_description_layout layout;
  int bytes;

  if (buffer == NULL) return -ENOSPC;
  bytes = describe(source, buffer, room, &layout);
  if (bytes < 0) return bytes;
  event->size = sizeof(*event);
  event->desc = (const struct weft_event_desc*)buffer;
  event->fixed_size = layout.fixed_size;
  event->nowrite_size = layout.nowrite_size;
  event->segment_count = layout.segment_count;
  event->nowrite_segments = layout.nowrite_segments;
  return bytes;
}
