// SPDX-License-Identifier: Apache-2.0
// Computes weft's changes to a pod that is being created: a volume with the library, and per
// container a read-only mount, LD_PRELOAD and the container's name. A pure function of the pod and
// of the cluster's state.
//
// Invariants: a pod is changed at most once. If a container cannot be changed correctly, it is left
// unchanged, and this is reported. Changes only add things, except that an existing LD_PRELOAD is
// rewritten. Thread-safety: all functions are pure.
#ifndef WEFT_UST_INJECTOR_WEBHOOK_MUTATION_H_
#define WEFT_UST_INJECTOR_WEBHOOK_MUTATION_H_

#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "lib/kube/library.h"
#include "ust-injector/webhook/preload.h"

namespace weft::webhook {

using kube::kFolder;
using kube::kInjectLabel;
using kube::kVolume;

// Annotations that users set on pods, besides the label of library.h.
inline constexpr std::string_view kContainersAnnotation = "weft.dev/containers";
inline constexpr std::string_view kPreloadAnnotation = "weft.dev/preload";
inline constexpr std::string_view kPreloadFromEnvAnnotation = "weft.dev/preload-from-env";

// The library's ConfigMap of a namespace.
struct Library {
  std::string config_map;
  std::set<std::string> architectures;  // as nodes name them: amd64, arm64
  bool sets_preload = false;            // its data has LD_PRELOAD, for envFrom
};

struct ClusterFacts {
  std::optional<Library> library;  // of the pod's namespace; none: not known to be there
  std::string untrusted;           // a ConfigMap there that is labelled as the library, and is not
  std::set<std::string> node_architectures;  // of all nodes
};

struct Mutation {
  Json patch = Json::array();  // RFC 6902; empty: the pod stays as it is
  int containers = 0;          // that get the library with this patch
  std::vector<LeftAlone> left_alone;
};

// `pod` may be any JSON.
Mutation MutatePod(const Json& pod, const ClusterFacts& cluster);

}  // namespace weft::webhook

#endif  // WEFT_UST_INJECTOR_WEBHOOK_MUTATION_H_
