// SPDX-License-Identifier: Apache-2.0
// Delivering the library.
#include "controller/delivery/delivery.h"

#include <algorithm>

#include "lib/kube/library.h"

namespace weft::controller {

DeliveryPlan PlanDelivery(const std::string& current, const NamespaceFacts& name_space,
                          const std::vector<PodFacts>& pods, const LibraryMaps& there) {
  DeliveryPlan plan;
  const bool wanted =
      name_space.wants_library || std::ranges::any_of(pods, &PodFacts::wants_library);
  if (!wanted || name_space.is_ending) return plan;
  const auto found = there.find(current);
  plan.apply = found == there.end() || !found->second;
  for (const auto& [name, is_current] : there) {
    if (name != current && is_current) plan.age.push_back(name);
  }
  return plan;
}

Status Delivery::Reconcile(const std::string& name_space) {
  if (untouched_.contains(name_space)) return {};
  const DeliveryPlan plan = PlanDelivery(library_.name, world_.Namespace(name_space),
                                         world_.Pods(name_space), world_.Libraries(name_space));
  const auto address = [&](const std::string& name) {
    return kube::Address{.resource = kube::kConfigMaps, .name_space = name_space, .name = name};
  };
  if (plan.apply) {
    const auto applied =
        client_.Apply(address(library_.name), LibraryConfigMap(library_, name_space));
    // The namespace went away meanwhile.
    if (!applied && applied.error().code == ErrorCode::kNotFound) return {};
    if (!applied) return std::unexpected(applied.error());
  }
  // After the current one is there, so that there is always one to take.
  for (const std::string& name : plan.age) {
    const auto aged = client_.MergePatch(
        address(name), {{"metadata", {{"labels", {{kube::kLibraryLabel, kube::kLibraryOld}}}}}});
    if (!aged && aged.error().code != ErrorCode::kNotFound) return std::unexpected(aged.error());
  }
  return {};
}

}  // namespace weft::controller
