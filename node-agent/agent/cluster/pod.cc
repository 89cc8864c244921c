// SPDX-License-Identifier: Apache-2.0
// See pod.h.
#include "node-agent/agent/cluster/pod.h"

#include <charconv>
#include <cmath>
#include <string_view>

#include "lib/kube/library.h"

namespace weft::agent {
namespace {

using kube::At;
using kube::Json;
using kube::TextAt;

bool IsWeftVolume(const Json& volume) {
  return TextAt(volume, {"name"}) == kube::kVolume &&
         TextAt(volume, {"configMap", "name"}).starts_with(kube::kLibraryPrefix);
}

bool IsTrue(const Json& object, kube::JsonPath path) {
  const Json* value = At(object, path);
  return value != nullptr && value->is_boolean() && value->get<bool>();
}

// What runs with the node's process ids, or is privileged, is a part of the node.
std::string WhyNotAttached(const PodFacts& pod, const Json& object, const Json& container) {
  const auto wish = pod.labels.find(std::string(kube::kInjectLabel));
  if (wish != pod.labels.end() && wish->second == "disabled")
    return "its pod has the label weft.dev/inject: disabled";
  if (!TextAt(object, {"metadata", "annotations", "kubernetes.io/config.mirror"}).empty())
    return "its pod is static: the node knows it by another uid than the API server";
  if (IsTrue(object, {"spec", "hostPID"})) return "its pod has the node's process ids (hostPID)";
  if (IsTrue(container, {"securityContext", "privileged"})) return "it is privileged";
  return "";
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

// A text of Kubernetes' type resource.Quantity is a decimal number, then a suffix or an exponent.
uint64_t ReadQuantity(const std::string& text) {
  double number = 0;
  const char* end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, number);
  if (error != std::errc{} || number <= 0) return 0;
  const std::string suffix(rest, end);
  double unit = suffix.empty() ? 1 : 0;
  if (suffix == "m") unit = 1e-3;
  const std::string_view letters = "kMGTPE";
  const size_t power =
      suffix.empty() ? std::string_view::npos : letters.find(suffix[0] == 'K' ? 'k' : suffix[0]);
  if (power != std::string_view::npos && (suffix.size() == 1 || suffix.substr(1) == "i"))
    unit = std::pow(suffix.size() == 1 ? 1000.0 : 1024.0, static_cast<double>(power + 1));
  const double bytes = number * unit;
  constexpr double kMost = 9e18;
  return bytes < kMost ? static_cast<uint64_t>(bytes) : 0;
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
    const std::string name = TextAt(container, {"name"});
    if (has_volume && kube::MountsLibrary(container))
      facts.containers.push_back(name);
    else
      facts.bare[name] = WhyNotAttached(facts, pod, container);
    const uint64_t limit = ReadQuantity(TextAt(container, {"resources", "limits", "memory"}));
    if (limit != 0) facts.memory_limits[name] = limit;
  };
  ForEach(pod, {"spec", "containers"}, add);
  ForEach(pod, {"spec", "initContainers"}, add);
  // "containerd://ID"
  const auto add_id = [&](const Json& status) {
    const std::string id = TextAt(status, {"containerID"});
    const size_t at = id.find("://");
    if (at != std::string::npos) {
      facts.ids[id.substr(at + 3)] = TextAt(status, {"name"});
      facts.images[TextAt(status, {"name"})] = TextAt(status, {"imageID"});
    }
    if (At(status, {"state", "running"}) != nullptr) facts.running.insert(TextAt(status, {"name"}));
    if (facts.waiting.empty()) facts.waiting = TextAt(status, {"state", "waiting", "reason"});
  };
  ForEach(pod, {"status", "containerStatuses"}, add_id);
  ForEach(pod, {"status", "initContainerStatuses"}, add_id);
  return facts;
}

}  // namespace weft::agent
