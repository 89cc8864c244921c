// SPDX-License-Identifier: Apache-2.0
// See statedump.h.
#include "ust-injector/preload/statedump.h"

#include "ust-injector/preload/channel.h"
#include "ust-injector/preload/decide.h"
#include "ust-injector/preload/emit.h"
#include "ust-injector/preload/helper_task.h"
#include "ust-injector/preload/lock.h"
#include "ust-injector/preload/registry.h"
#include "ust-injector/preload/seccomp.h"
#include "ust-injector/preload/statedump_events.h"

static const uint32_t always_off = 0;
static struct weft_event events[WEFT_STATEDUMP_EVENTS];

void weft_statedump_start(void) {
  static uint8_t descriptions[WEFT_STATEDUMP_EVENTS][WEFT_STATEDUMP_DESCRIPTION_BYTES];
  for (int i = 0; i < WEFT_STATEDUMP_EVENTS; ++i) {
    events[i].state = (void*)(uintptr_t)&weft_undecided;
    events[i].enabled = &always_off;
    (void)weft_runtime_provide(&weft_statedump_events[i], descriptions[i], sizeof(descriptions[i]),
                               &events[i]);
  }
}

// Returns false if all of them are off now.
static bool look_at_words(void) {
  bool any = false;
  for (int i = 0; i < WEFT_STATEDUMP_EVENTS; ++i) {
    const uint32_t* word = weft_registry_word(weft_event_name(&events[i]));
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

static void emit_object(uint32_t channel, const struct weft_loaded_object* object) {
  const struct weft_statedump_bin_info info = {
      .baddr = object->base,
      .memsz = object->size,
      .path_size = object->path_size,
      .is_pic = object->is_pic,
      .has_build_id = object->build_id_size != 0,
  };
  struct weft_segment segment = {.data = object->path, .size = object->path_size};
  emit(channel, WEFT_STATEDUMP_BIN_INFO, &info, &segment);
  if (object->build_id_size == 0) return;
  const struct weft_statedump_build_id id = {.baddr = object->base, .size = object->build_id_size};
  segment = (struct weft_segment){.data = object->build_id, .size = object->build_id_size};
  emit(channel, WEFT_STATEDUMP_BUILD_ID, &id, &segment);
}

void weft_statedump(uint32_t channel, const struct weft_loaded_objects* list) {
  char procname[WEFT_STATEDUMP_PROCNAME_BYTES] = {0};
  if (!look_at_words()) return;
  weft_syscall(__NR_prctl, 16 /* PR_GET_NAME */, procname);
  emit(channel, WEFT_STATEDUMP_START, NULL, NULL);
  emit(channel, WEFT_STATEDUMP_PROCNAME, procname, NULL);
  const struct weft_loaded_object* object = NULL;
  while ((object = weft_loaded_objects_next(list, object)) != NULL) emit_object(channel, object);
  emit(channel, WEFT_STATEDUMP_END, NULL, NULL);
}

static bool wants_dump(uint32_t channel) {
  return weft_channels[channel].id != 0 &&
         (weft_channels[channel].flags & WEFT_CHANNEL_STATEDUMP) != 0 &&
         weft_anchor->channels[channel].ring.slots != NULL;
}

static void gather_in_helper(void* list) { weft_loaded_objects_gather(list); }

void weft_statedump_again(void) {
  uint64_t mask;
  uint32_t first = 0;
  while (first < WEFT_MAX_CHANNELS && !wants_dump(first)) ++first;
  if (first == WEFT_MAX_CHANNELS || !look_at_words() || !weft_seccomp_may_call()) return;
  struct weft_loaded_objects* list = weft_loaded_objects_new();
  if (list == NULL) return;
  if (weft_lock(&mask)) {
    if (!weft_is_threaded() || !weft_helper_thread_run(gather_in_helper, list))
      weft_loaded_objects_gather(list);
    weft_unlock(mask);
    for (uint32_t i = first; i < WEFT_MAX_CHANNELS; ++i) {
      if (wants_dump(i)) weft_statedump(i, list);
    }
  }
  weft_loaded_objects_free(list);
}
