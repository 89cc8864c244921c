// SPDX-License-Identifier: Apache-2.0
// Facts out of the API's objects.
#include "controller/reconcile/facts.h"

#include <algorithm>

#include "lib/kube/library.h"

namespace weft::controller {
namespace {

using kube::At;
using kube::TextAt;

bool HasLibrary(const Json& pod) {
  const Json* volumes = At(pod, {"spec", "volumes"});
  if (volumes == nullptr || !volumes->is_array()) return false;
  for (const Json& volume : *volumes) {
    if (TextAt(volume, {"name"}) == kube::kVolume &&
        TextAt(volume, {"configMap", "name"}).starts_with(kube::kLibraryPrefix))
      return true;
  }
  return false;
}

void AddContainers(PodFacts& facts, const Json* containers) {
  if (containers == nullptr || !containers->is_array()) return;
  for (const Json& container : *containers) {
    const std::string name = TextAt(container, {"name"});
    if (name.empty()) continue;
    facts.containers[name] = facts.has_library && kube::MountsLibrary(container);
  }
}

std::set<std::string> EphemeralContainers(const Json& pod) {
  std::set<std::string> names;
  const Json* containers = At(pod, {"spec", "ephemeralContainers"});
  if (containers == nullptr || !containers->is_array()) return names;
  for (const Json& container : *containers) names.insert(TextAt(container, {"name"}));
  return names;
}

bool IsReady(const Json& pod) {
  const Json* conditions = At(pod, {"status", "conditions"});
  if (conditions == nullptr || !conditions->is_array()) return false;
  return std::ranges::any_of(*conditions, [](const Json& condition) {
    return TextAt(condition, {"type"}) == "Ready" && TextAt(condition, {"status"}) == "True";
  });
}

// What `kubectl rollout restart` takes. A Deployment's ReplicaSet is named after it and the
// template's hash, which pods have as a label.
std::string RestartTarget(const Json& pod, const std::map<std::string, std::string>& labels) {
  const Json* owners = At(pod, {"metadata", "ownerReferences"});
  if (owners == nullptr || !owners->is_array() || owners->empty()) return "";
  const std::string kind = TextAt(owners->front(), {"kind"});
  std::string name = TextAt(owners->front(), {"name"});
  if (kind == "StatefulSet") return "statefulset/" + name;
  if (kind == "DaemonSet") return "daemonset/" + name;
  const auto hash = labels.find("pod-template-hash");
  if (kind != "ReplicaSet" || hash == labels.end() || !name.ends_with("-" + hash->second))
    return "";
  name.resize(name.size() - hash->second.size() - 1);
  return "deployment/" + name;
}

}  // namespace

ObjectKey KeyOf(const Json& object) {
  return {TextAt(object, {"metadata", "namespace"}), TextAt(object, {"metadata", "name"})};
}

PodFacts ReadPod(const Json& pod) {
  PodFacts facts;
  facts.name = TextAt(pod, {"metadata", "name"});
  facts.node = TextAt(pod, {"spec", "nodeName"});
  facts.labels = kube::TextsAt(pod, {"metadata", "labels"});
  facts.restart = RestartTarget(pod, facts.labels);
  facts.has_library = HasLibrary(pod);
  AddContainers(facts, At(pod, {"spec", "containers"}));
  AddContainers(facts, At(pod, {"spec", "initContainers"}));
  facts.ephemeral = EphemeralContainers(pod);
  const auto wish = facts.labels.find(std::string(kube::kInjectLabel));
  facts.wants_library = wish != facts.labels.end() && wish->second == "enabled";
  facts.refuses_library = wish != facts.labels.end() && wish->second == "disabled";
  const std::string phase = TextAt(pod, {"status", "phase"});
  facts.made = TextAt(pod, {"metadata", "creationTimestamp"});
  facts.is_ready = IsReady(pod);
  facts.is_over = phase == "Succeeded" || phase == "Failed";
  facts.is_ending = At(pod, {"metadata", "deletionTimestamp"}) != nullptr;
  return facts;
}

NodeFacts ReadNode(const Json& node) {
  return {.labels = kube::TextsAt(node, {"metadata", "labels"})};
}

NamespaceFacts ReadNamespace(const Json& name_space) {
  const std::string wish = TextAt(name_space, {"metadata", "labels", kube::kInjectLabel});
  return {.is_known = true,
          .labels = kube::TextsAt(name_space, {"metadata", "labels"}),
          .wants_library = wish == "enabled",
          .refuses_library = wish == "disabled",
          .restarts_missed =
              TextAt(name_space, {"metadata", "annotations", kube::kRestartMissed}) == "true",
          .is_ending = At(name_space, {"metadata", "deletionTimestamp"}) != nullptr};
}

}  // namespace weft::controller
