// SPDX-License-Identifier: Apache-2.0
// Delivers the library to every namespace that wants it. Deletes nothing: pods refer to old
// versions as long as they live. Used by one thread.
#ifndef WEFT_CONTROLLER_DELIVERY_DELIVERY_H_
#define WEFT_CONTROLLER_DELIVERY_DELIVERY_H_

#include <set>
#include <string>
#include <vector>

#include "controller/delivery/library.h"
#include "controller/world.h"
#include "lib/kube/client.h"

namespace weft::controller {

struct DeliveryPlan {
  bool apply = false;            // make the current one, or its label
  std::vector<std::string> age;  // ConfigMaps to be labelled old
};

// Whether and what a namespace wants. A pure function.
DeliveryPlan PlanDelivery(const std::string& current, const NamespaceFacts& name_space,
                          const std::vector<PodFacts>& pods, const LibraryMaps& there);

class Delivery {
 public:
  // Nothing goes to `own_namespace` and to kube-system.
  Delivery(kube::Client& client, const World& world, Library library,
           const std::string& own_namespace)
      : client_(client),
        world_(world),
        library_(std::move(library)),
        untouched_({own_namespace, "kube-system"}) {}

  Status Reconcile(const std::string& name_space);

 private:
  kube::Client& client_;
  const World& world_;
  const Library library_;
  const std::set<std::string> untouched_;
};

}  // namespace weft::controller

#endif  // WEFT_CONTROLLER_DELIVERY_DELIVERY_H_
