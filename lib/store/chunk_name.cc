// SPDX-License-Identifier: Apache-2.0
#include "lib/store/chunk_name.h"

#include <charconv>
#include <optional>

namespace weft::store {
namespace {

// A number as FormatChunkName writes it.
std::optional<uint64_t> ParseNumber(std::string_view text) {
  uint64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return text.size() > 1 && text.front() == '0' ? std::nullopt : std::optional(number);
}

}  // namespace

ChunkName ParseChunkName(std::string_view file) {
  ChunkName first{.stream = std::string(file)};
  const size_t events_dot = file.rfind('.');
  if (events_dot == std::string_view::npos || events_dot == 0) return first;
  const size_t sequence_dot = file.rfind('.', events_dot - 1);
  if (sequence_dot == std::string_view::npos || sequence_dot == 0) return first;
  const auto sequence = ParseNumber(file.substr(sequence_dot + 1, events_dot - sequence_dot - 1));
  const auto events = ParseNumber(file.substr(events_dot + 1));
  if (!sequence || !events || *sequence == 0) return first;
  return {.stream = std::string(file.substr(0, sequence_dot)),
          .sequence = *sequence,
          .events = *events};
}

std::string FormatChunkName(const ChunkName& name) {
  if (name.sequence == 0) return name.stream;
  return name.stream + "." + std::to_string(name.sequence) + "." + std::to_string(name.events);
}

}  // namespace weft::store
