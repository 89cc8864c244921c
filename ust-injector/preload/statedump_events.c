// SPDX-License-Identifier: Apache-2.0
// See statedump_events.h.
#include "ust-injector/preload/statedump_events.h"

#define WEFT_DEBUG_LINE 13 /* the log level */

static const struct weft_runtime_field procname_fields[] = {
    {.name = "procname",
     .kind = WEFT_FIELD_KIND_ARRAY,
     .flags = WEFT_FIELD_TEXT | WEFT_FIELD_INLINE | WEFT_FIELD_SIGNED,
     .elem_size = 1,
     .base = 10,
     .count = WEFT_STATEDUMP_PROCNAME_BYTES},
};

static const struct weft_runtime_field bin_info_fields[] = {
    {.name = "baddr", .kind = WEFT_FIELD_KIND_INTEGER, .elem_size = 8, .base = 16},
    {.name = "memsz", .kind = WEFT_FIELD_KIND_INTEGER, .elem_size = 8, .base = 10},
    {.name = "path", .kind = WEFT_FIELD_KIND_STRING, .elem_size = 1},
    {.name = "is_pic", .kind = WEFT_FIELD_KIND_INTEGER, .elem_size = 1, .base = 10},
    {.name = "has_build_id", .kind = WEFT_FIELD_KIND_INTEGER, .elem_size = 1, .base = 10},
    {.name = "has_debug_link", .kind = WEFT_FIELD_KIND_INTEGER, .elem_size = 1, .base = 10},
};

static const struct weft_runtime_field build_id_fields[] = {
    {.name = "baddr", .kind = WEFT_FIELD_KIND_INTEGER, .elem_size = 8, .base = 16},
    {.name = "build_id",
     .kind = WEFT_FIELD_KIND_SEQUENCE,
     .elem_size = 1,
     .base = 16,
     .length_size = 8},
};

// Sizes are multiples of 8 because they have always been: consumers tell events apart by the bytes
// of their descriptions.
#define WEFT_EVENT_OF(event) \
  .name = "lttng_ust_statedump:" event, .loglevel = WEFT_DEBUG_LINE, .size_multiple = 8
#define WEFT_FIELDS_OF(table) .field_count = sizeof(table) / sizeof((table)[0]), .fields = (table)

const struct weft_runtime_event weft_statedump_events[WEFT_STATEDUMP_EVENTS] = {
    [WEFT_STATEDUMP_START] = {WEFT_EVENT_OF("start")},
    [WEFT_STATEDUMP_PROCNAME] = {WEFT_EVENT_OF("procname"), WEFT_FIELDS_OF(procname_fields)},
    [WEFT_STATEDUMP_BIN_INFO] = {WEFT_EVENT_OF("bin_info"), WEFT_FIELDS_OF(bin_info_fields)},
    [WEFT_STATEDUMP_BUILD_ID] = {WEFT_EVENT_OF("build_id"), WEFT_FIELDS_OF(build_id_fields)},
    [WEFT_STATEDUMP_END] = {WEFT_EVENT_OF("end")},
};
