// SPDX-License-Identifier: Apache-2.0
// The webhook's view of the cluster: which namespaces have the library, and which architectures
// nodes have. Informers update it on their threads; the server's threads read it.
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
  // Returns what is known of a namespace now.
  ClusterFacts Facts(const std::string& name_space) const;
  // Whether both collections were listed once.
  bool is_complete() const;

  void SetLibraries(const std::vector<Json>& config_maps);
  void ChangeLibrary(const kube::WatchEvent& event);
  void SetNodes(const std::vector<Json>& nodes);
  void ChangeNode(const kube::WatchEvent& event);

 private:
  // By name; several while a new version of the library is rolled out.
  using Libraries = std::map<std::string, Library>;

  mutable std::mutex mutex_;
  bool libraries_listed_ = false;
  bool nodes_listed_ = false;
  std::map<std::string, Libraries> libraries_;             // by namespace
  std::map<std::string, std::string> node_architectures_;  // by node
};

// Keeps `view` as the cluster is. `on_error` is called on the informers' threads.
std::vector<std::unique_ptr<kube::Informer>> Feed(
    ClusterView& view, kube::Client& client, const std::function<void(const Error&)>& on_error);

}  // namespace weft::webhook

#endif  // WEFT_UST_INJECTOR_WEBHOOK_CLUSTER_VIEW_H_
