// SPDX-License-Identifier: Apache-2.0
// Carries out the plan of one Trace. Used by one thread.
#ifndef WEFT_CONTROLLER_RECONCILE_RECONCILER_H_
#define WEFT_CONTROLLER_RECONCILE_RECONCILER_H_

#include <chrono>
#include <map>
#include <optional>
#include <random>
#include <string>

#include "controller/reconcile/plan.h"
#include "controller/world.h"
#include "lib/kube/client.h"
#include "lib/kube/event.h"

namespace weft::controller {

// Counts of events alone are written no more often than this (an API server is no time series).
inline constexpr std::chrono::seconds kCountsInterval{10};
// How long after an eviction, or a refused one, pods are looked at again at the latest.
inline constexpr std::chrono::seconds kEvictAgain{10};

class Reconciler {
 public:
  // `relay` takes every Trace. `own_namespace` is weft's, `instance` this pod's name, for Events.
  // `uninstalling`: from now on.
  Reconciler(kube::Client& client, const World& world, api::RelayEndpoints relay,
             std::string own_namespace, std::string instance, bool uninstalling = false)
      : client_(client),
        world_(world),
        relay_(std::move(relay)),
        own_namespace_(std::move(own_namespace)),
        instance_(std::move(instance)),
        uninstalling_since_(uninstalling ? std::optional(std::chrono::system_clock::now())
                                         : std::nullopt),
        random_(std::random_device{}()) {}

  // When to look again, if ever; an error: to be tried again soon.
  Result<std::optional<std::chrono::milliseconds>> Reconcile(const ObjectKey& key);

 private:
  // What was last written about a Trace: newer than what the informers have seen.
  struct Written {
    std::string uid;
    api::TraceStatus status;
    kube::WallTime at;
  };

  Situation Look(const ObjectKey& key, const Json& object);
  Status Do(const Situation& situation, Plan& plan);
  Status Evict(const Situation& situation, Plan& plan);
  Status WriteFinalizers(const api::Trace& trace, bool want);
  Status ApplySession(const api::Trace& trace, const api::TraceSession& session);
  Status WriteStatus(const Situation& situation, Plan& plan);
  Status Announce(const api::Trace& trace, const Plan& plan, kube::WallTime now);

  kube::Client& client_;
  const World& world_;
  const api::RelayEndpoints relay_;
  const std::string own_namespace_;
  const std::string instance_;
  const std::optional<kube::WallTime> uninstalling_since_;
  std::mt19937_64 random_;
  std::map<ObjectKey, Written> written_;
};

}  // namespace weft::controller

#endif  // WEFT_CONTROLLER_RECONCILE_RECONCILER_H_
