// SPDX-License-Identifier: Apache-2.0
// See rules.h.
#include "ust-injector/preload/rules.h"

#include <linux/mman.h>

#include "ust-injector/preload/control_area.h"
#include "ust-injector/preload/process.h"

static struct {
  uint8_t* bytes;   // WEFT_MAX_RULESET_BYTES
  uint64_t offset;  // header.rules that `bytes` is a copy of, 0: no valid copy
  uint32_t generation;
  // Generations alone are not enough: one whose publication broke off comes again.
  uint64_t checksum;
} copy;

bool weft_rules_contain(const struct weft_ruleset* rules, uint32_t offset, uint64_t count,
                        uint64_t size) {
  return offset % 8 == 0 && offset >= sizeof(*rules) && offset <= rules->size &&
         count * size <= rules->size - offset;
}

static bool is_sound(const struct weft_ruleset* r) {
  const uint32_t head = (uint32_t)__builtin_offsetof(struct weft_ruleset, generation);
  if (weft_fnv1a64((const uint8_t*)r + head, r->size - head) != r->checksum) return false;
  return r->channel_count <= WEFT_MAX_CHANNELS && r->rule_count <= WEFT_MAX_RULES &&
         (r->channel_count == 0 || weft_rules_contain(r, r->channels_offset, r->channel_count,
                                                      sizeof(struct weft_channel_spec))) &&
         (r->rule_count == 0 ||
          weft_rules_contain(r, r->rules_offset, r->rule_count, sizeof(struct weft_rule)));
}

// Returns the offset of the rule set in force and its header; 0: there is none that is whole.
static uint64_t find_head(struct weft_ruleset* head) {
  const struct weft_control_header* header = (const void*)weft_process.control;
  // acquire: the rule set's bytes are there before its offset (A1 before A2)
  const uint64_t offset = __atomic_load_n(&header->rules, __ATOMIC_ACQUIRE);
  if (offset < weft_process.arena_offset || offset % 8 != 0 ||
      offset > weft_process.control_size - sizeof(*head)) {
    return 0;
  }
  memcpy(head, weft_process.control + offset, sizeof(*head));
  const bool is_whole = head->magic == WEFT_CONTROL_MAGIC && head->size >= sizeof(*head) &&
                        head->size <= WEFT_MAX_RULESET_BYTES &&
                        head->size <= weft_process.control_size - offset;
  return is_whole ? offset : 0;
}

bool weft_rules_have_flag(uint32_t flag) {
  struct weft_ruleset head;
  const uint64_t offset = find_head(&head);
  if (offset == 0 || head.channel_count > WEFT_MAX_CHANNELS ||
      !weft_rules_contain(&head, head.channels_offset, head.channel_count,
                          sizeof(struct weft_channel_spec))) {
    return false;
  }
  for (uint32_t i = 0; i < head.channel_count; ++i) {
    struct weft_channel_spec channel;
    memcpy(&channel, weft_process.control + offset + head.channels_offset + i * sizeof(channel),
           sizeof(channel));
    if ((channel.flags & flag) != 0) return true;
  }
  return false;
}

const struct weft_ruleset* weft_rules(void) {
  struct weft_ruleset head;
  const uint64_t offset = find_head(&head);
  if (offset == 0 || !weft_control_area_learn()) return NULL;
  if (copy.offset == offset && copy.generation == head.generation &&
      copy.checksum == head.checksum) {
    return (const void*)copy.bytes;
  }

  if (copy.bytes == NULL) {
    const long map = weft_syscall(__NR_mmap, 0, WEFT_MAX_RULESET_BYTES, 3,
                                  MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (weft_failed(map)) return NULL;
    copy.bytes = (uint8_t*)map;
  }
  copy.offset = 0;
  memcpy(copy.bytes, weft_process.control + offset, head.size);
  ((struct weft_ruleset*)copy.bytes)->size = head.size;  // what was checked is what is used
  if (!is_sound((const void*)copy.bytes)) return NULL;
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
