// SPDX-License-Identifier: Apache-2.0
// Rule sets to bytes. The decoder is libweft.so's; the test has an independent one.
#include "lib/control/ruleset.h"

#include <cstddef>
#include <cstring>

namespace weft::control {
namespace {

// Appends parts, each aligned to 8, and says where they begin.
class Builder {
 public:
  uint32_t Reserve(size_t size) {
    Align();
    const auto at = static_cast<uint32_t>(bytes_.size());
    bytes_.resize(bytes_.size() + size);
    return at;
  }
  uint32_t Append(const void* data, size_t size) {
    const uint32_t at = Reserve(size);
    if (size != 0) std::memcpy(bytes_.data() + at, data, size);
    return at;
  }
  uint32_t Append(const std::string& text) { return Append(text.c_str(), text.size() + 1); }
  template <typename T>
  void Put(uint32_t at, const T& value) {
    std::memcpy(bytes_.data() + at, &value, sizeof(T));
  }
  void Align() { bytes_.resize((bytes_.size() + 7) & ~size_t{7}); }
  [[nodiscard]] size_t size() const { return bytes_.size(); }
  std::vector<uint8_t> Take() { return std::move(bytes_); }

 private:
  std::vector<uint8_t> bytes_;
};

Status CheckText(const std::string& text, size_t limit, const char* what) {
  if (text.empty() || text.find('\0') != std::string::npos)
    return Fail(ErrorCode::kInvalid, std::string(what) + ": empty or with a NUL in it");
  if (text.size() >= limit) return Fail(ErrorCode::kLimit, std::string(what) + " is too long");
  return {};
}

Status CheckChannel(const ChannelSpec& channel) {
  if (channel.id == 0) return Fail(ErrorCode::kInvalid, "a channel without an id");
  if (channel.contexts.size() > WEFT_MAX_CONTEXTS)
    return Fail(ErrorCode::kLimit, "more than 32 contexts in a channel");
  if (channel.vpids.size() > WEFT_MAX_TRACKED_IDS || channel.vuids.size() > WEFT_MAX_TRACKED_IDS)
    return Fail(ErrorCode::kLimit, "more than 256 tracked ids in a channel");
  for (const ContextSpec& context : channel.contexts)
    if (!context.name.empty())
      WEFT_TRY(CheckText(context.name, WEFT_CONTEXT_NAME_MAX, "name of a context"));
  for (const RuleSpec& rule : channel.rules) {
    WEFT_TRY(CheckText(rule.pattern, WEFT_EVENT_NAME_MAX, "pattern of an event"));
    for (const std::string& exclusion : rule.exclusions)
      WEFT_TRY(CheckText(exclusion, WEFT_EVENT_NAME_MAX, "exclusion"));
    if (rule.filter.size() > WEFT_FILTER_MAX_BYTES)
      return Fail(ErrorCode::kLimit, "a filter program is too large");
  }
  return {};
}

Status Check(const std::vector<ChannelSpec>& channels) {
  if (channels.size() > WEFT_MAX_CHANNELS)
    return Fail(ErrorCode::kLimit, "more than 16 channels on at once");
  size_t rules = 0;
  for (const ChannelSpec& channel : channels) {
    WEFT_TRY(CheckChannel(channel));
    rules += channel.rules.size();
  }
  if (rules > WEFT_MAX_RULES) return Fail(ErrorCode::kLimit, "more than 1024 rules on at once");
  return {};
}

uint32_t PutContexts(Builder& out, const std::vector<ContextSpec>& contexts) {
  const uint32_t at = out.Reserve(contexts.size() * sizeof(weft_context_spec));
  for (size_t i = 0; i < contexts.size(); ++i) {
    weft_context_spec spec{};
    spec.id = contexts[i].id;
    if (!contexts[i].name.empty()) {
      spec.name_size = static_cast<uint16_t>(contexts[i].name.size() + 1);
      spec.name_offset = out.Append(contexts[i].name);
    }
    spec.perf_type = contexts[i].perf_type;
    spec.perf_config = contexts[i].perf_config;
    out.Put(at + static_cast<uint32_t>(i * sizeof(spec)), spec);
  }
  return at;
}

void PutChannel(Builder& out, uint32_t at, const ChannelSpec& channel) {
  weft_channel_spec spec{};
  spec.id = channel.id;
  spec.mode = channel.mode;
  spec.subbuf_shift = channel.subbuf_shift;
  spec.subbufs_shift = channel.subbufs_shift;
  spec.flags = channel.flags;
  spec.memory_budget = channel.memory_budget;
  spec.context_count = static_cast<uint32_t>(channel.contexts.size());
  spec.contexts_offset = PutContexts(out, channel.contexts);
  spec.vpid_count = static_cast<uint32_t>(channel.vpids.size());
  spec.vpids_offset = out.Append(channel.vpids.data(), channel.vpids.size() * sizeof(uint32_t));
  spec.vuid_count = static_cast<uint32_t>(channel.vuids.size());
  spec.vuids_offset = out.Append(channel.vuids.data(), channel.vuids.size() * sizeof(uint32_t));
  out.Put(at, spec);
}

void PutRule(Builder& out, uint32_t at, uint32_t channel, const RuleSpec& rule) {
  weft_rule spec{};
  spec.channel = channel;
  spec.loglevel_min = rule.loglevel_min;
  spec.loglevel_max = rule.loglevel_max;
  spec.pattern_offset = out.Append(rule.pattern);
  spec.exclusion_count = static_cast<uint32_t>(rule.exclusions.size());
  if (!rule.exclusions.empty())
    spec.exclusions_offset = out.Reserve(rule.exclusions.size() * sizeof(uint32_t));
  for (size_t i = 0; i < rule.exclusions.size(); ++i) {
    const uint32_t text = out.Append(rule.exclusions[i]);
    out.Put(spec.exclusions_offset + static_cast<uint32_t>(i * sizeof(uint32_t)), text);
  }
  if (!rule.filter.empty()) {
    spec.filter_offset = out.Append(rule.filter.data(), rule.filter.size());
    spec.filter_size = static_cast<uint32_t>(rule.filter.size());
  }
  out.Put(at, spec);
}

}  // namespace

Result<std::vector<uint8_t>> EncodeRuleset(uint32_t generation,
                                           const std::vector<ChannelSpec>& channels) {
  WEFT_TRY(Check(channels));
  Builder out;
  weft_ruleset set{};
  out.Reserve(sizeof(set));
  set.magic = WEFT_CONTROL_MAGIC;
  set.generation = generation;
  set.channel_count = static_cast<uint32_t>(channels.size());
  set.channels_offset = out.Reserve(channels.size() * sizeof(weft_channel_spec));
  for (const ChannelSpec& channel : channels)
    set.rule_count += static_cast<uint32_t>(channel.rules.size());
  set.rules_offset = out.Reserve(set.rule_count * sizeof(weft_rule));

  uint32_t rule_at = set.rules_offset;
  for (uint32_t i = 0; i < channels.size(); ++i) {
    PutChannel(out, set.channels_offset + i * static_cast<uint32_t>(sizeof(weft_channel_spec)),
               channels[i]);
    for (const RuleSpec& rule : channels[i].rules) {
      PutRule(out, rule_at, i, rule);
      rule_at += sizeof(weft_rule);
    }
    if (out.size() > WEFT_MAX_RULESET_BYTES)
      return Fail(ErrorCode::kLimit, "the rules and filters together are larger than 512 KiB");
  }
  out.Align();
  set.size = static_cast<uint32_t>(out.size());
  out.Put(0, set);
  std::vector<uint8_t> bytes = out.Take();
  constexpr size_t kCovered = offsetof(weft_ruleset, checksum) + sizeof(set.checksum);
  set.checksum = weft_fnv1a64(bytes.data() + kCovered, bytes.size() - kCovered);
  std::memcpy(bytes.data() + offsetof(weft_ruleset, checksum), &set.checksum, sizeof(set.checksum));
  return bytes;
}

bool HasWildcard(const std::string& pattern, std::string* literal) {
  std::string text;
  for (size_t i = 0; i < pattern.size(); ++i) {
    if (pattern[i] == '*') return true;
    if (pattern[i] == '\\' && i + 1 < pattern.size()) ++i;
    text.push_back(pattern[i]);
  }
  if (literal != nullptr) *literal = std::move(text);
  return false;
}

std::vector<bool> ConcernedWords(const std::vector<ChannelSpec>& channels) {
  std::vector<bool> words(WEFT_CONTROL_WORDS, false);
  for (const ChannelSpec& channel : channels) {
    for (const RuleSpec& rule : channel.rules) {
      std::string name;
      if (HasWildcard(rule.pattern, &name)) return std::vector<bool>(WEFT_CONTROL_WORDS, true);
      words[weft_name_hash(name.c_str())] = true;
    }
  }
  return words;
}

}  // namespace weft::control
