// SPDX-License-Identifier: Apache-2.0
// See statedump.h. The descriptions stand here as the bytes that the headers' macros would make.
#include "ust-injector/preload/statedump.h"

#include "ust-injector/preload/apart.h"
#include "ust-injector/preload/channel.h"
#include "ust-injector/preload/decide.h"
#include "ust-injector/preload/emit.h"
#include "ust-injector/preload/registry.h"

#define WEFT_PROVIDER "lttng_ust_statedump:"
#define WEFT_DEBUG_LINE 13
#define WEFT_PROCNAME_BYTES 17u /* LTTng-UST's */

#define WEFT_DESCRIPTION __attribute__((packed, aligned(8)))
#define WEFT_EVENT_BYTES(n)     \
  struct weft_event_desc event; \
  char event_name[sizeof(WEFT_PROVIDER #n)]
#define WEFT_FIELD_BYTES(n)         \
  struct weft_field_desc n##_field; \
  char n[sizeof(#n)]
#define WEFT_EVENT_OF(variable, n, fields) \
  .event = {sizeof(variable),              \
            WEFT_EVENT_DESC_VERSION,       \
            fields,                        \
            WEFT_DEBUG_LINE,               \
            sizeof(WEFT_PROVIDER #n),      \
            0,                             \
            {0, 0}},                       \
  .event_name = WEFT_PROVIDER #n
#define WEFT_FIELD_OF(n, kind, flags, bytes, show, elements, length) \
  .n##_field = {sizeof(struct weft_field_desc) + sizeof(#n),         \
                WEFT_FIELD_KIND_##kind,                              \
                flags,                                               \
                bytes,                                               \
                show,                                                \
                elements,                                            \
                sizeof(#n),                                          \
                length,                                              \
                0},                                                  \
  .n = #n

static const struct WEFT_DESCRIPTION {
  WEFT_EVENT_BYTES(start);
} start_bytes = {WEFT_EVENT_OF(start_bytes, start, 0)};

static const struct WEFT_DESCRIPTION {
  WEFT_EVENT_BYTES(procname);
  WEFT_FIELD_BYTES(procname);
} procname_bytes = {
    WEFT_EVENT_OF(procname_bytes, procname, 1),
    WEFT_FIELD_OF(procname, ARRAY, WEFT_FIELD_TEXT | WEFT_FIELD_INLINE | WEFT_FIELD_SIGNED, 1, 10,
                  WEFT_PROCNAME_BYTES, 0),
};

static const struct WEFT_DESCRIPTION {
  WEFT_EVENT_BYTES(bin_info);
  WEFT_FIELD_BYTES(baddr);
  WEFT_FIELD_BYTES(memsz);
  WEFT_FIELD_BYTES(path);
  WEFT_FIELD_BYTES(is_pic);
  WEFT_FIELD_BYTES(has_build_id);
  WEFT_FIELD_BYTES(has_debug_link);
} bin_info_bytes = {
    WEFT_EVENT_OF(bin_info_bytes, bin_info, 6),
    WEFT_FIELD_OF(baddr, INTEGER, 0, 8, 16, 0, 0),
    WEFT_FIELD_OF(memsz, INTEGER, 0, 8, 10, 0, 0),
    WEFT_FIELD_OF(path, STRING, 0, 1, 0, 0, 0),
    WEFT_FIELD_OF(is_pic, INTEGER, 0, 1, 10, 0, 0),
    WEFT_FIELD_OF(has_build_id, INTEGER, 0, 1, 10, 0, 0),
    WEFT_FIELD_OF(has_debug_link, INTEGER, 0, 1, 10, 0, 0),
};

static const struct WEFT_DESCRIPTION {
  WEFT_EVENT_BYTES(build_id);
  WEFT_FIELD_BYTES(baddr);
  WEFT_FIELD_BYTES(build_id);
} build_id_bytes = {
    WEFT_EVENT_OF(build_id_bytes, build_id, 2),
    WEFT_FIELD_OF(baddr, INTEGER, 0, 8, 16, 0, 0),
    WEFT_FIELD_OF(build_id, SEQUENCE, 0, 1, 16, 0, 8),
};

static const struct WEFT_DESCRIPTION {
  WEFT_EVENT_BYTES(end);
} end_bytes = {WEFT_EVENT_OF(end_bytes, end, 0)};

// The images' fixed parts (lib/abi/event.h).
struct __attribute__((packed)) bin_info_image {
  uint64_t baddr, memsz;
  uint32_t path_size;
  uint8_t is_pic, has_build_id, has_debug_link;
};
struct __attribute__((packed)) build_id_image {
  uint64_t baddr;
  uint32_t size;
};

enum { START, PROCNAME, BIN_INFO, BUILD_ID, END, EVENTS };

static const uint32_t always_off = 0;

#define WEFT_EVENT(bytes, fixed, segments)     \
  {.size = sizeof(struct weft_event),          \
   .state = (void*)(uintptr_t)&weft_undecided, \
   .desc = (const void*)&(bytes),              \
   .enabled = &always_off,                     \
   .fixed_size = (fixed),                      \
   .segment_count = (segments)}

static struct weft_event events[EVENTS] = {
    [START] = WEFT_EVENT(start_bytes, 0, 0),
    [PROCNAME] = WEFT_EVENT(procname_bytes, WEFT_PROCNAME_BYTES, 0),
    [BIN_INFO] = WEFT_EVENT(bin_info_bytes, sizeof(struct bin_info_image), 1),
    [BUILD_ID] = WEFT_EVENT(build_id_bytes, sizeof(struct build_id_image), 1),
    [END] = WEFT_EVENT(end_bytes, 0, 0),
};

// False: all of them are off now.
static bool look_at_words(void) {
  bool any = false;
  for (int i = 0; i < EVENTS; ++i) {
    const uint32_t* word = weft_registry_word((const char*)(events[i].desc + 1));
    // relaxed: always the same value
    __atomic_store_n(&events[i].enabled, word, __ATOMIC_RELAXED);
    any = any || __atomic_load_n(word, __ATOMIC_RELAXED) != 0;  // relaxed: as in emit_words
  }
  return any;
}

static void emit(uint32_t channel, int which, const void* fixed,
                 const struct weft_segment* segments) {
  weft_emit_into(channel, &events[which], fixed, segments, (const void*)(uintptr_t)&emit);
}

static void emit_object(uint32_t channel, const struct weft_loaded* object) {
  const struct bin_info_image info = {
      .baddr = object->base,
      .memsz = object->size,
      .path_size = object->path_size,
      .is_pic = object->is_pic,
      .has_build_id = object->build_id_size != 0,
  };
  struct weft_segment segment = {.data = object->path, .size = object->path_size};
  emit(channel, BIN_INFO, &info, &segment);
  if (object->build_id_size == 0) return;
  const struct build_id_image id = {.baddr = object->base, .size = object->build_id_size};
  segment = (struct weft_segment){.data = object->build_id, .size = object->build_id_size};
  emit(channel, BUILD_ID, &id, &segment);
}

void weft_statedump(uint32_t channel, const struct weft_loaded_list* list) {
  char procname[WEFT_PROCNAME_BYTES] = {0};
  if (!look_at_words()) return;
  weft_syscall(__NR_prctl, 16 /* PR_GET_NAME */, procname);
  emit(channel, START, NULL, NULL);
  emit(channel, PROCNAME, procname, NULL);
  const struct weft_loaded* object = NULL;
  while ((object = weft_loaded_next(list, object)) != NULL) emit_object(channel, object);
  emit(channel, END, NULL, NULL);
}

static bool wants_dump(uint32_t channel) {
  return weft_channels[channel].id != 0 &&
         (weft_channels[channel].flags & WEFT_CHANNEL_STATEDUMP) != 0 &&
         weft_anchor->channels[channel].ring.slots != NULL;
}

static void gather_apart(void* list) { weft_loaded_gather(list); }

void weft_statedump_again(void) {
  uint64_t mask;
  uint32_t first = 0;
  while (first < WEFT_MAX_CHANNELS && !wants_dump(first)) ++first;
  if (first == WEFT_MAX_CHANNELS || !look_at_words() || !weft_process_may_call()) return;
  struct weft_loaded_list* list = weft_loaded_new();
  if (list == NULL) return;
  if (weft_lock(&mask)) {
    if (!weft_is_threaded() || !weft_run_in_thread(gather_apart, list)) weft_loaded_gather(list);
    weft_unlock(mask);
    for (uint32_t i = first; i < WEFT_MAX_CHANNELS; ++i) {
      if (wants_dump(i)) weft_statedump(i, list);
    }
  }
  weft_loaded_free(list);
}
