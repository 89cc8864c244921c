// SPDX-License-Identifier: Apache-2.0
// Evaluating label selectors. Source: the Kubernetes documentation, "Labels and Selectors".
#include "lib/api/selector.h"

#include <algorithm>

namespace weft::api {
namespace {

bool Holds(const LabelRequirement& requirement, const std::map<std::string, std::string>& labels) {
  const auto label = labels.find(requirement.key);
  const bool there = label != labels.end();
  const bool listed =
      there && std::ranges::find(requirement.values, label->second) != requirement.values.end();
  switch (requirement.op) {
    case SelectorOperator::kIn:
      return listed;
    case SelectorOperator::kNotIn:
      return !listed;
    case SelectorOperator::kExists:
      return there;
    case SelectorOperator::kDoesNotExist:
      return !there;
  }
  return false;
}

std::string ToQuery(const LabelRequirement& requirement) {
  switch (requirement.op) {
    case SelectorOperator::kExists:
      return requirement.key;
    case SelectorOperator::kDoesNotExist:
      return "!" + requirement.key;
    case SelectorOperator::kIn:
    case SelectorOperator::kNotIn:
      break;
  }
  std::string out =
      requirement.key + (requirement.op == SelectorOperator::kIn ? " in (" : " notin (");
  for (std::size_t i = 0; i < requirement.values.size(); ++i)
    out += (i == 0 ? "" : ",") + requirement.values[i];
  return out + ")";
}

}  // namespace

bool Matches(const LabelSelector& selector, const std::map<std::string, std::string>& labels) {
  const auto has = [&](const auto& wanted) {
    const auto label = labels.find(wanted.first);
    return label != labels.end() && label->second == wanted.second;
  };
  return std::ranges::all_of(selector.match_labels, has) &&
         std::ranges::all_of(selector.match_expressions,
                             [&](const LabelRequirement& r) { return Holds(r, labels); });
}

bool MatchesContainer(const PodSelection& pods, std::string_view container) {
  return pods.containers.empty() ||
         std::ranges::find(pods.containers, container) != pods.containers.end();
}

std::string ToQuery(const LabelSelector& selector) {
  std::string out;
  for (const auto& [key, value] : selector.match_labels)
    out.append(out.empty() ? "" : ",").append(key).append("=").append(value);
  for (const LabelRequirement& requirement : selector.match_expressions)
    out.append(out.empty() ? "" : ",").append(ToQuery(requirement));
  return out;
}

}  // namespace weft::api
