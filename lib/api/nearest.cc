// SPDX-License-Identifier: Apache-2.0
// Edit distance and the messages made of it.
#include "lib/api/nearest.h"

#include <algorithm>
#include <array>
#include <limits>

#include "lib/api/diagnostic.h"

namespace weft::api {
namespace {

constexpr std::size_t kMaxLength = 64;
constexpr std::size_t kListed = 12;

char Lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

}  // namespace

std::size_t EditDistance(std::string_view a, std::string_view b) {
  if (a.size() > kMaxLength || b.size() > kMaxLength)
    return std::numeric_limits<std::size_t>::max();
  // Three rows: a swap looks two rows back.
  std::array<std::array<std::size_t, kMaxLength + 1>, 3> rows{};
  for (std::size_t j = 0; j <= b.size(); ++j) rows[0][j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    auto& row = rows[i % 3];
    const auto& above = rows[(i + 2) % 3];
    const auto& above2 = rows[(i + 1) % 3];
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const char x = Lower(a[i - 1]);
      const char y = Lower(b[j - 1]);
      row[j] = std::min({above[j] + 1, row[j - 1] + 1, above[j - 1] + (x == y ? 0u : 1u)});
      if (i > 1 && j > 1 && x == Lower(b[j - 2]) && y == Lower(a[i - 2]))
        row[j] = std::min(row[j], above2[j - 2] + 1);
    }
  }
  return rows[a.size() % 3][b.size()];
}

std::size_t MostDistance(std::string_view a, std::string_view b) {
  return std::max<std::size_t>(1, std::max(a.size(), b.size()) / 3);
}

std::string_view Nearest(std::string_view name, std::span<const std::string_view> candidates) {
  std::string_view best;
  std::size_t best_distance = std::numeric_limits<std::size_t>::max();
  for (const std::string_view candidate : candidates) {
    const std::size_t distance = EditDistance(name, candidate);
    if (distance <= MostDistance(name, candidate) && distance < best_distance) {
      best = candidate;
      best_distance = distance;
    }
  }
  return best;
}

std::string DidYouMean(std::string_view name, std::span<const std::string_view> candidates) {
  if (const std::string_view near = Nearest(name, candidates); !near.empty())
    return ", did you mean " + Quote(near) + "?";
  std::string out = "; valid here: ";
  for (std::size_t i = 0; i < std::min(candidates.size(), kListed); ++i)
    out += (i == 0 ? "" : ", ") + std::string(candidates[i]);
  if (candidates.size() > kListed) out += ", ...";
  return out;
}

}  // namespace weft::api
