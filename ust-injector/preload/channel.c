// SPDX-License-Identifier: Apache-2.0
// See channel.h.
#include "ust-injector/preload/channel.h"

#include <linux/mman.h>

#include "ust-injector/preload/contexts.h"
#include "ust-injector/preload/memory.h"
#include "ust-injector/preload/rules.h"

struct weft_channel weft_channels[WEFT_MAX_CHANNELS];

static const uint32_t* copy_ids(const struct weft_ruleset* rules, uint32_t offset,
                                uint32_t* count) {
  uint32_t* ids = NULL;
  if (*count > WEFT_MAX_TRACKED_IDS) *count = WEFT_MAX_TRACKED_IDS;
  if (*count != 0 && weft_rules_contain(rules, offset, *count, 4))
    ids = weft_allocate(4ull * *count);
  if (ids == NULL) {
    *count = 0;
  } else {
    memcpy(ids, (const uint8_t*)rules + offset, 4ull * *count);
  }
  return ids;
}

bool weft_channel_spec_is_sound(const struct weft_channel_spec* spec) {
  return spec->id != 0 && spec->mode <= WEFT_RING_OVERWRITE &&
         spec->subbuf_shift >= WEFT_RING_MIN_SUBBUF_SHIFT &&
         spec->subbufs_shift >= WEFT_RING_MIN_SUBBUFS_SHIFT &&
         spec->subbufs_shift <= WEFT_RING_MAX_SUBBUFS_SHIFT &&
         spec->subbuf_shift + spec->subbufs_shift <= WEFT_RING_MAX_SLOT_SHIFT &&
         spec->context_count <= WEFT_MAX_CONTEXTS;
}

static uint32_t max_record(const struct weft_channel_spec* spec) {
  const uint32_t quarter = 1u << (spec->subbuf_shift - 2);
  const uint32_t most = (spec->flags & WEFT_CHANNEL_LARGE_RECORDS) != 0 ? WEFT_RECORD_MAX_BYTES
                                                                        : WEFT_RECORD_MAX_BYTES_1_0;
  return quarter < most ? quarter : most;
}

bool weft_channel_begin(struct weft_channel* c, const struct weft_ruleset* rules,
                        const struct weft_channel_spec* spec) {
  c->mode = spec->mode;
  c->subbuf_shift = spec->subbuf_shift;
  c->subbufs_shift = spec->subbufs_shift;
  c->flags = spec->flags;
  const uint64_t pages = spec->memory_budget >> WEFT_MEMORY_MIN_UNIT_SHIFT;
  c->memory_pages = pages < UINT32_MAX ? (uint32_t)pages : 0;
  c->max_record = max_record(spec);
  c->event_count = 0;
  c->descriptions_used = 0;
  c->vpid_count = spec->vpid_count;
  c->vuid_count = spec->vuid_count;
  c->vpids = copy_ids(rules, spec->vpids_offset, &c->vpid_count);
  c->vuids = copy_ids(rules, spec->vuids_offset, &c->vuid_count);
  c->contexts = weft_contexts_plan(rules, spec);
  if (spec->context_count != 0 && c->contexts == NULL) return false;
  if (c->descriptions == NULL) {
    const long map = weft_syscall(__NR_mmap, 0, WEFT_DESCRIPTIONS_BYTES, 3,
                                  MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (weft_failed(map)) return false;
    c->descriptions = (uint8_t*)map;
  }
  c->id = spec->id;
  return true;
}

int weft_channel_event(struct weft_channel* c, const struct weft_event_desc* desc) {
  uint32_t at = 0;
  while (at < c->descriptions_used) {
    const struct weft_description_entry* e = (const void*)(c->descriptions + at);
    if (e->size - sizeof(*e) == desc->size && memcmp(e + 1, desc, desc->size) == 0) {
      return e->event;
    }
    at += (e->size + 7) & ~7u;
  }
  const uint32_t size = desc->size + (uint32_t)sizeof(struct weft_description_entry);
  if (size > WEFT_DESCRIPTIONS_BYTES - at - 7 || c->event_count >= 0xffff) return -1;
  struct weft_description_entry* e = (void*)(c->descriptions + at);
  e->size = size;
  e->event = (uint16_t)c->event_count;
  e->reserved = 0;
  memcpy(e + 1, desc, desc->size);
  c->descriptions_used = at + ((size + 7) & ~7u);
  ++c->event_count;
  return e->event;
}
