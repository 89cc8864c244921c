// SPDX-License-Identifier: Apache-2.0
// Any bytes as an answer of the relay: no crash, no more memory than the answer has bytes, and
// what is taken is what was asked for. A seed's first line has the sizes of the parts that were
// asked for, one byte each; the answer is the rest.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cli/kubectl/relay_client.h"
#include "cli/kubectl/relay_path.h"

namespace {

using weft::kubectl::RelayPart;

void Require(bool holds) {
  if (!holds) std::abort();
}

// Encodes parts as docs/openapi/relay.yaml says.
std::string Encode(const std::vector<std::optional<std::string>>& parts) {
  std::string answer;
  for (const auto& part : parts) {
    const std::uint32_t length = part ? static_cast<std::uint32_t>(part->size()) : UINT32_MAX;
    for (int shift = 0; shift < 32; shift += 8) answer += static_cast<char>(length >> shift);
    if (part) answer += *part;
  }
  return answer;
}

void CheckParts(std::string_view sizes, std::string_view answer) {
  std::vector<RelayPart> asked;
  for (const char size : sizes) {
    asked.push_back({.path = "f", .offset = 0, .size = static_cast<unsigned char>(size)});
  }
  const auto parts = weft::kubectl::ParseParts(answer, asked);
  if (!parts) return Require(parts.error().code == weft::ErrorCode::kCorrupt);
  Require(parts->size() == asked.size());
  for (std::size_t i = 0; i < asked.size(); i++) {
    Require(!parts->at(i) || parts->at(i)->size() <= asked[i].size);
  }
  Require(Encode(*parts) == answer);
}

void CheckFiles(std::string_view answer) {
  const auto files = weft::kubectl::ParseFiles(answer);
  if (!files) return Require(files.error().code == weft::ErrorCode::kCorrupt);
  for (const auto& file : *files) {
    Require(weft::kubectl::IsRelayPath(file.path) && file.offset <= file.size);
  }
}

void CheckRates(std::string_view answer) {
  const auto rates = weft::kubectl::ParseRates(answer);
  if (!rates) return Require(rates.error().code == weft::ErrorCode::kCorrupt);
  for (const auto& pod : *rates) Require(!pod.pod.empty());
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const std::size_t end = std::min(text.find('\n'), text.size());
  const std::string_view answer = text.substr(std::min(end + 1, text.size()));
  CheckParts(text.substr(0, end), answer);
  CheckFiles(answer);
  CheckRates(answer);
  return 0;
}
