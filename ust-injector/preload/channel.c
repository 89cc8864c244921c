// SPDX-License-Identifier: Apache-2.0
// Rule sets and channels. See channel.h; the ring set itself is made in ring_set.c.
#include "ust-injector/preload/channel.h"

#include <linux/mman.h>

#include "ust-injector/preload/contexts.h"
#include "ust-injector/preload/ring_set.h"

struct weft_channel weft_channels[WEFT_MAX_CHANNELS];

static struct {
  uint8_t* bytes;   // WEFT_MAX_RULESET_BYTES
  uint64_t offset;  // header.rules that `bytes` is a copy of, 0: no valid copy
  uint32_t generation;
  uint64_t
      checksum;  // generations alone are not enough: one whose publication broke off comes again
} copy;

static bool table_fits(const struct weft_ruleset* r, uint32_t offset, uint64_t count,
                       uint64_t size) {
  return offset % 8 == 0 && offset >= sizeof(*r) && offset <= r->size &&
         count * size <= r->size - offset;
}

static bool rules_are_sound(const struct weft_ruleset* r) {
  const uint32_t head = (uint32_t)__builtin_offsetof(struct weft_ruleset, generation);
  if (weft_fnv1a64((const uint8_t*)r + head, r->size - head) != r->checksum) return false;
  return r->channel_count <= WEFT_MAX_CHANNELS && r->rule_count <= WEFT_MAX_RULES &&
         (r->channel_count == 0 ||
          table_fits(r, r->channels_offset, r->channel_count, sizeof(struct weft_channel_spec))) &&
         (r->rule_count == 0 ||
          table_fits(r, r->rules_offset, r->rule_count, sizeof(struct weft_rule)));
}

const struct weft_ruleset* weft_rules(void) {
  const struct weft_control_header* header = (const void*)weft_process.control;
  // acquire: the rule set's bytes are there before its offset (A1 before A2)
  const uint64_t offset = __atomic_load_n(&header->rules, __ATOMIC_ACQUIRE);
  struct weft_ruleset head;

  if (offset < weft_process.arena_offset || offset % 8 != 0 ||
      offset > weft_process.control_size - sizeof(head)) {
    return NULL;
  }
  if (!weft_process_learn()) return NULL;
  memcpy(&head, weft_process.control + offset, sizeof(head));
  if (head.magic != WEFT_CONTROL_MAGIC || head.size < sizeof(head) ||
      head.size > WEFT_MAX_RULESET_BYTES || head.size > weft_process.control_size - offset) {
    return NULL;
  }
  if (copy.offset == offset && copy.generation == head.generation &&
      copy.checksum == head.checksum) {
    return (const void*)copy.bytes;
  }

  if (copy.bytes == NULL) {
    const long map = weft_syscall(__NR_mmap, 0, WEFT_MAX_RULESET_BYTES, 3,
                                  MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (map < 0 && map > -4096) return NULL;
    copy.bytes = (uint8_t*)map;
  }
  copy.offset = 0;
  memcpy(copy.bytes, weft_process.control + offset, head.size);
  ((struct weft_ruleset*)copy.bytes)->size = head.size;  // what was checked is what is used
  if (!rules_are_sound((const void*)copy.bytes)) return NULL;
  copy.generation = ((const struct weft_ruleset*)copy.bytes)->generation;
  copy.checksum = ((const struct weft_ruleset*)copy.bytes)->checksum;
  copy.offset = offset;
  return (const void*)copy.bytes;
}

const char* weft_rules_text(const struct weft_ruleset* rules, uint32_t offset) {
  const char* text = (const char*)rules + offset;
  for (uint32_t i = offset; i < rules->size; ++i) {
    if (((const char*)rules)[i] == 0) return offset >= sizeof(*rules) ? text : NULL;
  }
  return NULL;
}

static const uint32_t* copy_ids(const struct weft_ruleset* rules, uint32_t offset,
                                uint32_t* count) {
  uint32_t* ids = NULL;
  if (*count > WEFT_MAX_TRACKED_IDS) *count = WEFT_MAX_TRACKED_IDS;
  if (*count != 0 && table_fits(rules, offset, *count, 4)) ids = weft_allocate(4ull * *count);
  if (ids == NULL) {
    *count = 0;
  } else {
    memcpy(ids, (const uint8_t*)rules + offset, 4ull * *count);
  }
  return ids;
}

static bool spec_is_sound(const struct weft_channel_spec* s) {
  return s->id != 0 && s->mode <= WEFT_RING_OVERWRITE &&
         s->subbuf_shift >= WEFT_RING_MIN_SUBBUF_SHIFT &&
         s->subbufs_shift >= WEFT_RING_MIN_SUBBUFS_SHIFT &&
         s->subbufs_shift <= WEFT_RING_MAX_SUBBUFS_SHIFT &&
         s->subbuf_shift + s->subbufs_shift <= WEFT_RING_MAX_SLOT_SHIFT &&
         s->context_count <= WEFT_MAX_CONTEXTS;
}

static uint32_t max_record(const struct weft_channel_spec* spec) {
  const uint32_t quarter = 1u << (spec->subbuf_shift - 2);
  const uint32_t most = (spec->flags & WEFT_CHANNEL_LARGE_RECORDS) != 0 ? WEFT_RECORD_MAX_BYTES
                                                                        : WEFT_RECORD_MAX_BYTES_1_0;
  return quarter < most ? quarter : most;
}

static bool is_in_rules(const struct weft_ruleset* rules, uint64_t id) {
  const struct weft_channel_spec* specs =
      (const void*)((const char*)rules + rules->channels_offset);
  for (uint32_t i = 0; i < rules->channel_count; ++i) {
    if (specs[i].id == id) return true;
  }
  return false;
}

// A free entry, or that of a channel that is in force no more. Its memory stays mapped: a thread
// may still be on its way into it (the agent frees the pages).
static int free_entry(const struct weft_ruleset* rules) {
  for (int i = 0; i < (int)WEFT_MAX_CHANNELS; ++i) {
    if (weft_channels[i].id == 0) return i;
  }
  for (int i = 0; i < (int)WEFT_MAX_CHANNELS; ++i) {
    if (!is_in_rules(rules, weft_channels[i].id)) {
      weft_ring_set_forget((uint32_t)i);
      weft_channels[i].id = 0;
      return i;
    }
  }
  return -1;
}

int weft_channel_of(const struct weft_ruleset* rules, uint32_t n) {
  if (n >= rules->channel_count) return -1;
  const struct weft_channel_spec* spec =
      (const struct weft_channel_spec*)((const char*)rules + rules->channels_offset) + n;
  if (!spec_is_sound(spec)) return -1;
  for (int i = 0; i < (int)WEFT_MAX_CHANNELS; ++i) {
    if (weft_channels[i].id == spec->id) return i;
  }
  const int at = free_entry(rules);
  if (at < 0) return -1;

  struct weft_channel* c = &weft_channels[at];
  c->mode = spec->mode;
  c->subbuf_shift = spec->subbuf_shift;
  c->subbufs_shift = spec->subbufs_shift;
  c->flags = spec->flags;
  c->max_record = max_record(spec);
  c->event_count = 0;
  c->descriptions_used = 0;
  c->vpid_count = spec->vpid_count;
  c->vuid_count = spec->vuid_count;
  c->vpids = copy_ids(rules, spec->vpids_offset, &c->vpid_count);
  c->vuids = copy_ids(rules, spec->vuids_offset, &c->vuid_count);
  c->contexts = weft_contexts_plan(rules, spec);
  if (spec->context_count != 0 && c->contexts == NULL) return -1;
  if (c->descriptions == NULL) {
    const long map = weft_syscall(__NR_mmap, 0, WEFT_DESCRIPTIONS_BYTES, 3,
                                  MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (map < 0 && map > -4096) return -1;
    c->descriptions = (uint8_t*)map;
  }
  c->id = spec->id;
  return at;
}

int weft_channel_event(uint32_t channel, const struct weft_event_desc* desc) {
  struct weft_channel* c = &weft_channels[channel];
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
  weft_ring_set_describe(channel);
  return e->event;
}
