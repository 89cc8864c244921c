// SPDX-License-Identifier: Apache-2.0
// Delivering the library.
#include "controller/delivery/delivery.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "lib/kube/event.h"
#include "lib/kube/library.h"

namespace weft::controller {
namespace {

using kube::At;
using kube::TextAt;

bool HasContentOf(const Json& there, const Json& wanted) {
  const auto is_equal = [&](const char* field) {
    const Json* a = At(there, {field});
    const Json* b = At(wanted, {field});
    return a == nullptr || b == nullptr ? a == b : *a == *b;
  };
  return is_equal("binaryData") && is_equal("data") && is_equal("immutable");
}

}  // namespace

DeliveryPlan PlanDelivery(const std::string& current, const NamespaceFacts& name_space,
                          const std::vector<PodFacts>& pods, const LibraryMaps& there) {
  DeliveryPlan plan;
  const bool wanted =
      name_space.wants_library || std::ranges::any_of(pods, &PodFacts::wants_library);
  if (!wanted || name_space.is_ending) return plan;
  const auto found = there.find(current);
  plan.apply = found == there.end() || !found->second.is_current || !found->second.is_intact;
  for (const auto& [name, facts] : there) {
    if (name != current && facts.is_current) plan.age.push_back(name);
  }
  return plan;
}

Status Delivery::Reconcile(const std::string& name_space) {
  // Once for all namespaces, and again when it was deleted.
  if (!has_written_reference_ ||
      (name_space == own_namespace_ && !cache_.Libraries(own_namespace_).contains(library_.name))) {
    WEFT_TRY(Write(LibraryReference(library_, own_namespace_)));
    has_written_reference_ = true;
  }
  if (untouched_.contains(name_space)) return {};
  const DeliveryPlan plan = PlanDelivery(library_.name, cache_.Namespace(name_space),
                                         cache_.Pods(name_space), cache_.Libraries(name_space));
  if (plan.apply) WEFT_TRY(Write(LibraryConfigMap(library_, name_space)));
  // After the current one is there, so that there is always one to take.
  for (const std::string& name : plan.age) {
    const auto aged = client_.MergePatch(
        {.resource = kube::kConfigMaps, .name_space = name_space, .name = name},
        {{"metadata", {{"labels", {{kube::kLibraryLabel, kube::kLibraryOld}}}}}});
    if (!aged && aged.error().code != ErrorCode::kNotFound) return std::unexpected(aged.error());
  }
  return {};
}

Status Delivery::Write(const Json& config_map) {
  const kube::Address address{.resource = kube::kConfigMaps,
                              .name_space = TextAt(config_map, {"metadata", "namespace"}),
                              .name = library_.name};
  const auto applied = client_.Apply(address, config_map);
  // The namespace went away meanwhile.
  if (!applied && applied.error().code == ErrorCode::kNotFound) return {};
  if (applied && HasContentOf(*applied, config_map)) return {};
  // An immutable one with other content refuses the write; one that is not keeps more keys.
  if (!applied && applied.error().code != ErrorCode::kInvalid)
    return std::unexpected(applied.error());
  WEFT_ASSIGN(const Json there, client_.Get(address));
  if (HasContentOf(there, config_map)) return applied ? Status() : std::unexpected(applied.error());
  WEFT_TRY(client_.Delete(address, TextAt(there, {"metadata", "uid"})));
  const auto made = client_.Apply(address, config_map);
  if (!made) return std::unexpected(made.error());
  return Announce(there);
}

Status Delivery::Announce(const Json& replaced) {
  const kube::EventNote event{
      .regarding = {.api_version = "v1",
                    .kind = "ConfigMap",
                    .name_space = TextAt(replaced, {"metadata", "namespace"}),
                    .name = library_.name,
                    .uid = TextAt(replaced, {"metadata", "uid"})},
      .warning = true,
      .reason = "LibraryReplaced",
      .action = "Deliver",
      .note =
          "the ConfigMap had the name of weft's library and other content; it was deleted and "
          "made anew. The webhook names such a ConfigMap in no pod: find out who made it, and "
          "which pods name it",
      .controller = "weft.dev/controller",
      .instance = instance_};
  return PostEvent(client_, event, std::chrono::system_clock::now(), random_());
}

}  // namespace weft::controller
