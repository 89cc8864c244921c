// SPDX-License-Identifier: Apache-2.0
// See pod.h.
#include "node-agent/agent/cluster/pod.h"

#include "lib/kube/library.h"

namespace weft::agent {
namespace {

using kube::At;
using kube::Json;
using kube::TextAt;

// The webhook gives each container that it changes the volume, at its place.
bool HasLibrary(const Json& container) {
  const Json* mounts = At(container, {"volumeMounts"});
  if (mounts == nullptr || !mounts->is_array()) return false;
  for (const Json& mount : *mounts)
    if (TextAt(mount, {"name"}) == kube::kVolume && TextAt(mount, {"mountPath"}) == kube::kFolder)
      return true;
  return false;
}

bool IsWeftVolume(const Json& volume) {
  return TextAt(volume, {"name"}) == kube::kVolume &&
         TextAt(volume, {"configMap", "name"}).starts_with(kube::kLibraryPrefix);
}

template <typename Visit>
void ForEach(const Json& object, kube::JsonPath path, const Visit& visit) {
  const Json* list = At(object, path);
  if (list == nullptr || !list->is_array()) return;
  for (const Json& entry : *list) visit(entry);
}

}  // namespace

std::string ContainerKey(std::string pod_uid, const std::string& container) {
  return pod_uid.append("/").append(container);
}

PodFacts ReadPod(const Json& pod) {
  PodFacts facts;
  facts.uid = TextAt(pod, {"metadata", "uid"});
  facts.name_space = TextAt(pod, {"metadata", "namespace"});
  facts.name = TextAt(pod, {"metadata", "name"});
  facts.labels = kube::TextsAt(pod, {"metadata", "labels"});
  const std::string phase = TextAt(pod, {"status", "phase"});
  facts.is_over = phase == "Succeeded" || phase == "Failed";
  bool has_volume = false;
  ForEach(pod, {"spec", "volumes"},
          [&](const Json& volume) { has_volume = has_volume || IsWeftVolume(volume); });
  const auto add = [&](const Json& container) {
    if (has_volume && HasLibrary(container))
      facts.containers.push_back(TextAt(container, {"name"}));
  };
  ForEach(pod, {"spec", "containers"}, add);
  ForEach(pod, {"spec", "initContainers"}, add);
  // "containerd://ID"
  const auto add_id = [&](const Json& status) {
    const std::string id = TextAt(status, {"containerID"});
    const size_t at = id.find("://");
    if (at != std::string::npos) facts.ids[id.substr(at + 3)] = TextAt(status, {"name"});
  };
  ForEach(pod, {"status", "containerStatuses"}, add_id);
  ForEach(pod, {"status", "initContainerStatuses"}, add_id);
  return facts;
}

}  // namespace weft::agent
