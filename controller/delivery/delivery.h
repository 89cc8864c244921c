// SPDX-License-Identifier: Apache-2.0
// Delivers the library to every namespace that wants it. Deletes no version of the library: pods
// refer to old ones as long as they live. A ConfigMap that has the library's name and other content
// is replaced, and an Event reports it. The reference in weft's own namespace is there before any
// library, since the webhook believes only what agrees with it. Used by one thread.
#ifndef WEFT_CONTROLLER_DELIVERY_DELIVERY_H_
#define WEFT_CONTROLLER_DELIVERY_DELIVERY_H_

#include <random>
#include <set>
#include <string>
#include <vector>

#include "controller/delivery/library.h"
#include "controller/object_cache.h"
#include "lib/kube/client.h"

namespace weft::controller {

struct DeliveryPlan {
  bool apply = false;            // make the current one, its label or its content
  std::vector<std::string> age;  // ConfigMaps to be labelled old
};

// Whether and what a namespace wants. A pure function.
DeliveryPlan PlanDelivery(const std::string& current, const NamespaceFacts& name_space,
                          const std::vector<PodFacts>& pods, const LibraryMaps& there);

class Delivery {
 public:
  // No library goes to `own_namespace` and to kube-system. `instance`: this pod, for Events.
  Delivery(kube::Client& client, const ObjectCache& cache, Library library,
           const std::string& own_namespace, std::string instance)
      : client_(client),
        cache_(cache),
        library_(std::move(library)),
        own_namespace_(own_namespace),
        untouched_({own_namespace, "kube-system"}),
        instance_(std::move(instance)),
        random_(std::random_device{}()) {}

  Status Reconcile(const std::string& name_space);

 private:
  // Makes sure that the ConfigMap is there, with exactly this content.
  Status Write(const Json& config_map);
  Status Announce(const Json& replaced);

  kube::Client& client_;
  const ObjectCache& cache_;
  const Library library_;
  const std::string own_namespace_;
  const std::set<std::string> untouched_;
  const std::string instance_;
  std::minstd_rand random_;
  bool has_written_reference_ = false;
};

}  // namespace weft::controller

#endif  // WEFT_CONTROLLER_DELIVERY_DELIVERY_H_
