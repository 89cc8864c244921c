// SPDX-License-Identifier: Apache-2.0
// The webhook's view of the cluster: which namespaces have the library, and which architectures
// nodes have. Informers update it on their threads; the server's threads read it.
//
// A ConfigMap is the library only if the digest of its bytes is the one that a reference in weft's
// own namespace tells for its name: a tenant may have made ConfigMaps before weft was installed.
// The digest is computed once, when the ConfigMap is seen; its bytes are not kept.
#ifndef WEFT_UST_INJECTOR_WEBHOOK_CLUSTER_VIEW_H_
#define WEFT_UST_INJECTOR_WEBHOOK_CLUSTER_VIEW_H_

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "lib/kube/informer.h"
#include "ust-injector/webhook/mutation.h"

namespace weft::webhook {

class ClusterView {
 public:
  explicit ClusterView(std::string own_namespace) : own_namespace_(std::move(own_namespace)) {}

  // Returns what is known of a namespace now.
  ClusterFacts Facts(const std::string& name_space) const;
  // Were both collections listed once, and has the controller said which library is weft's?
  bool is_complete() const;

  void SetLibraries(const std::vector<Json>& config_maps);
  void ChangeLibrary(const kube::WatchEvent& event);
  void SetNodes(const std::vector<Json>& nodes);
  void ChangeNode(const kube::WatchEvent& event);

 private:
  struct Candidate {
    std::set<std::string> architectures;
    std::string digest;  // of its bytes; "": it is no library
    bool sets_preload = false;
  };
  // Candidates by name. There are several while a new version of the library is rolled out.
  using Candidates = std::map<std::string, Candidate>;
  static Candidate Read(const Json& config_map);

  const std::string own_namespace_;
  mutable std::mutex mutex_;
  bool libraries_listed_ = false;
  bool nodes_listed_ = false;
  std::map<std::string, Candidates> candidates_;           // by namespace
  std::map<std::string, std::string> references_;          // digests by name
  std::map<std::string, std::string> node_architectures_;  // by node
};

// Keeps `view` as the cluster is. `on_error` is called on the informers' threads.
std::vector<std::unique_ptr<kube::Informer>> Feed(
    ClusterView& view, kube::Client& client, const std::function<void(const Error&)>& on_error);

}  // namespace weft::webhook

#endif  // WEFT_UST_INJECTOR_WEBHOOK_CLUSTER_VIEW_H_
