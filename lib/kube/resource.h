// SPDX-License-Identifier: Apache-2.0
// Names of resources, and their paths on an API server. Thread-safety: pure
// functions.
#ifndef WEFT_LIB_KUBE_RESOURCE_H_
#define WEFT_LIB_KUBE_RESOURCE_H_

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace weft::kube {

struct Resource {
  std::string_view group;  // "": the core group
  std::string_view version;
  std::string_view plural;
};

inline constexpr Resource kPods{"", "v1", "pods"};
inline constexpr Resource kNodes{"", "v1", "nodes"};
inline constexpr Resource kNamespaces{"", "v1", "namespaces"};
inline constexpr Resource kConfigMaps{"", "v1", "configmaps"};
inline constexpr Resource kSecrets{"", "v1", "secrets"};
inline constexpr Resource kEvents{"events.k8s.io", "v1", "events"};
inline constexpr Resource kDeployments{"apps", "v1", "deployments"};
inline constexpr Resource kLeases{"coordination.k8s.io", "v1", "leases"};
inline constexpr Resource kDefinitions{"apiextensions.k8s.io", "v1", "customresourcedefinitions"};
inline constexpr Resource kMutatingWebhooks{"admissionregistration.k8s.io", "v1",
                                            "mutatingwebhookconfigurations"};
inline constexpr Resource kTraces{"weft.dev", "v1alpha1", "traces"};
inline constexpr Resource kClusterTraces{"weft.dev", "v1alpha1", "clustertraces"};
inline constexpr Resource kTraceSessions{"weft.dev", "v1alpha1", "tracesessions"};
inline constexpr Resource kTraceViews{"weft.dev", "v1alpha1", "traceviews"};

// One object, or a collection where name is "". name_space "": cluster-scoped, or all namespaces.
struct Address {
  Resource resource;
  std::string name_space;
  std::string name;
  std::string subresource;  // "status", "scale" or ""
};

// Which objects of a collection, in the API's own notation, not encoded. "": all.
struct Selection {
  std::string fields;  // "spec.nodeName=node-1"
  std::string labels;  // "weft.dev/trace=t"
};

using Query = std::vector<std::pair<std::string_view, std::string>>;

// "/apis/weft.dev/v1alpha1/namespaces/shop/traces/t/status?a=b", encoded.
std::string Target(const Address& address, const Query& query = {});

// Everything but RFC 3986's unreserved characters as %XX.
std::string Encode(std::string_view text);

}  // namespace weft::kube

#endif  // WEFT_LIB_KUBE_RESOURCE_H_
