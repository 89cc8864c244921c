// SPDX-License-Identifier: Apache-2.0
// See decide.h.
#include "ust-injector/preload/decide.h"

#include "lib/event/match.h"
#include "ust-injector/preload/channel_table.h"
#include "ust-injector/preload/contexts.h"
#include "ust-injector/preload/lock.h"
#include "ust-injector/preload/memory.h"
#include "ust-injector/preload/ring_set.h"
#include "ust-injector/preload/rules.h"
#include "ust-injector/preload/seccomp.h"

const struct weft_event_state weft_undecided = {.key = ~0ull};

static const char* event_name(const struct weft_event_desc* desc) {
  return (const char*)(desc + 1);
}

// The exclusions of one rule.
struct excluded {
  const struct weft_ruleset* rules;
  const uint32_t* offsets;
};

static const char* exclusion(const void* of, uint32_t i) {
  const struct excluded* excluded = of;
  return weft_rules_text(excluded->rules, excluded->offsets[i]);
}

static bool rule_matches(const struct weft_ruleset* rules, const struct weft_rule* rule,
                         const struct weft_event_desc* desc) {
  const char* pattern = weft_rules_text(rules, rule->pattern_offset);
  if (pattern == NULL || rule->exclusion_count > rules->size / 4 ||
      rule->exclusions_offset % 4 != 0 ||
      rule->exclusions_offset > rules->size - 4 * rule->exclusion_count) {
    return false;
  }
  const struct excluded excluded = {rules,
                                    (const void*)((const char*)rules + rule->exclusions_offset)};
  const struct weft_match_rule match = {.pattern = pattern,
                                        .exclusion = exclusion,
                                        .exclusions = &excluded,
                                        .exclusion_count = rule->exclusion_count,
                                        .loglevel_min = rule->loglevel_min,
                                        .loglevel_max = rule->loglevel_max};
  return weft_match_event(&match, event_name(desc), desc->loglevel);
}

// The rule's filter for this event; NULL: it cannot match the event (an unknown field, a wrong
// type).
static const struct weft_linked_filter* link_filter(const struct weft_ruleset* rules,
                                                    const struct weft_rule* rule,
                                                    const struct weft_event_desc* desc) {
  struct weft_description_layout layout;
  if (rule->filter_offset > rules->size || rule->filter_size > rules->size - rule->filter_offset ||
      weft_description_check(desc, desc->size, &layout) != 0) {
    return NULL;
  }
  const void* program = (const char*)rules + rule->filter_offset;
  const int bound = weft_filter_link(program, rule->filter_size, desc, &layout, NULL, NULL, 0);
  if (bound <= 0) return NULL;
  void* linked = weft_allocate((uint64_t)bound);
  if (linked == NULL || weft_filter_link(program, rule->filter_size, desc, &layout,
                                         &weft_contexts_for_filters, linked, (uint32_t)bound) < 0) {
    return NULL;
  }
  return linked;
}

// Links into target the filters of the rules of channel number `n` that match the event. False: no
// rule can match it. A rule without a filter wins. Under the lock.
static bool add_filters(struct weft_target* target, const struct weft_ruleset* rules, uint32_t n,
                        const struct weft_event_desc* desc) {
  const struct weft_rule* all = (const void*)((const char*)rules + rules->rules_offset);
  uint32_t count = 0;
  for (uint32_t i = 0; i < rules->rule_count; ++i) {
    if (all[i].channel != n || !rule_matches(rules, &all[i], desc)) continue;
    if (all[i].filter_offset == 0) return true;
    ++count;
  }
  if (count == 0) return false;
  const struct weft_linked_filter** filters = weft_allocate(count * sizeof(filters[0]));
  if (filters == NULL) return false;
  for (uint32_t i = 0; i < rules->rule_count; ++i) {
    if (all[i].channel != n || !rule_matches(rules, &all[i], desc)) continue;
    filters[target->filter_count] = link_filter(rules, &all[i], desc);
    if (filters[target->filter_count] != NULL) ++target->filter_count;
  }
  target->filters = filters;
  return target->filter_count != 0;
}

// Adds what the rules say of channel number `n` to the state.
static void add_target(struct weft_event_state* state, const struct weft_ruleset* rules, uint32_t n,
                       struct weft_event* event) {
  struct weft_target* target = &state->targets[state->target_count];
  if (!add_filters(target, rules, n, event->desc)) return;
  const int channel = weft_channel_table_find(rules, n);
  const int id = channel < 0 ? -1 : weft_channel_table_event((uint32_t)channel, event->desc);
  if (id < 0) return;
  target->channel = (uint16_t)channel;
  target->event = (uint16_t)id;
  ++state->target_count;
}

// Chooses the event's way (WEFT_STATE_...), and fills the parts of state->record that the way
// needs.
static uint64_t choose_way(struct weft_event_state* state, const struct weft_event* event) {
  const struct weft_target* t = &state->targets[0];
  if (state->target_count != 1) return WEFT_STATE_SLOW;
  if (t->filter_count == 1) return WEFT_STATE_FILTERED;
  if (t->filter_count != 0 || weft_process.slot_id_offset == 0 ||
      weft_process.clock != WEFT_CLOCK_TSC ||
      event->fixed_size > (1u << (weft_channels[t->channel].subbuf_shift - 3))) {
    return WEFT_STATE_SLOW;
  }
  const struct weft_context_plan* contexts = weft_channels[t->channel].contexts;
  state->record.ring = &weft_anchor->channels[t->channel].ring;
  if (event->segment_count != 0) {
    const bool few = contexts == NULL && event->segment_count <= WEFT_STATE_MAX_SEGMENTS;
    return few ? WEFT_STATE_SEGMENTS : WEFT_STATE_SLOW;
  }
  const uint32_t bytes = contexts != NULL ? weft_contexts_constant_bytes(contexts) : 0;
  if (contexts != NULL &&
      (bytes == 0 || bytes + ((event->fixed_size + 7) & ~7u) > WEFT_STATE_IMAGE_BYTES)) {
    return WEFT_STATE_SLOW;
  }
  state->record.slots = weft_ring_set_slots(t->channel);
  if (state->record.slots == NULL) return WEFT_STATE_SLOW;
  const uint32_t size = (uint32_t)sizeof(struct weft_record) + bytes + event->fixed_size;
  state->record.word0 = weft_record_word0(size, t->event);
  state->record.increment = weft_record_increment(size);
  state->record.boundary = weft_record_boundary(weft_channels[t->channel].subbuf_shift);
  return contexts != NULL ? WEFT_STATE_CONTEXTS : WEFT_STATE_FAST;
}

const struct weft_event_state* weft_decide(struct weft_event* event, uint32_t word) {
  uint64_t mask;
  if (!weft_seccomp_may_call() && !weft_silent) return NULL;
  // What is decided now would hold when the library is woken.
  if (weft_silent == WEFT_SILENT_DETACHED) return NULL;
  if (!weft_lock(&mask)) return NULL;
  struct weft_event_state* state = NULL;
  const struct weft_ruleset* rules = weft_rules();
  if (rules != NULL) {
    state = weft_allocate(sizeof(*state) + rules->channel_count * sizeof(state->targets[0]));
  }
  if (state != NULL) {
    state->event = event;
    for (uint32_t n = 0; n < rules->channel_count; ++n) add_target(state, rules, n, event);
    state->key = word | choose_way(state, event);
    // release: the state is complete before any thread finds it
    __atomic_store_n(&event->state, state, __ATOMIC_RELEASE);
  }
  weft_unlock(mask);
  return state;
}
