// SPDX-License-Identifier: Apache-2.0
// See near_names.h.
#include "node-agent/hooks/near_names.h"

#include <algorithm>
#include <utility>

#include "lib/api/nearest.h"
#include "node-agent/hooks/limits.h"

namespace weft::hooks {

NearNames::NearNames(std::string wanted) : wanted_(std::move(wanted)) {
  while (wanted_.ends_with('*')) wanted_.pop_back();
}

void NearNames::Offer(const std::string& name, const std::string& object) {
  // Names that differ more in length cannot be near: most are passed over here.
  const size_t enough = api::MostDistance(name, wanted_);
  const size_t difference =
      std::max(name.size(), wanted_.size()) - std::min(name.size(), wanted_.size());
  if (wanted_.empty() || difference > enough || compared_ == kMaxCompared) return;
  ++compared_;
  const size_t distance = api::EditDistance(name, wanted_);
  if (distance <= enough) Keep({.distance = distance, .name = name, .object = object});
}

void NearNames::Offer(const std::vector<NearName>& names) {
  for (const NearName& name : names) Keep(name);
}

void NearNames::Keep(NearName name) {
  const auto at = std::ranges::lower_bound(best_, name);
  if (at != best_.end() && *at == name) return;
  best_.insert(at, std::move(name));
  if (best_.size() > kNearNames) best_.pop_back();
}

std::string DidYouMean(const std::vector<NearName>& names) {
  std::string text;
  for (const NearName& name : names) {
    text += text.empty() ? ", did you mean " : " or ";
    text.append("\"").append(name.name).append("\"");
    if (!name.object.empty()) text.append(" (").append(name.object).append(")");
  }
  return text.empty() ? text : text + "?";
}

}  // namespace weft::hooks
