// SPDX-License-Identifier: Apache-2.0
// Carries out the plan of one Trace. Used by one thread.
#ifndef WEFT_CONTROLLER_RECONCILE_RECONCILER_H_
#define WEFT_CONTROLLER_RECONCILE_RECONCILER_H_

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <random>
#include <set>
#include <string>

#include "controller/object_cache.h"
#include "controller/reconcile/plan.h"
#include "lib/kube/client.h"
#include "lib/kube/event.h"

namespace weft::controller {

// Counts of events alone are written no more often than this (an API server is no time series).
// With the agents' interval, 5 s, and the looks in between they are at most 10 s old.
inline constexpr std::chrono::seconds kCountsInterval{3};
// How long after an eviction, or a refused one, pods are looked at again at the latest.
inline constexpr std::chrono::seconds kEvictAgain{10};

class Reconciler {
 public:
  // `relay` takes every Trace. `own_namespace` is weft's, `instance` this pod's name, for Events.
  // `uninstalling`: from now on. `served_namespaces`: others get no library. A namespace's oldest
  // `traces_per_namespace` Traces are recorded.
  Reconciler(kube::Client& client, const ObjectCache& cache, api::RelayEndpoints relay,
             std::string own_namespace, std::string instance, bool uninstalling = false,
             api::LabelSelector served_namespaces = {}, std::size_t traces_per_namespace = SIZE_MAX)
      : client_(client),
        cache_(cache),
        relay_(std::move(relay)),
        own_namespace_(std::move(own_namespace)),
        instance_(std::move(instance)),
        served_namespaces_(std::move(served_namespaces)),
        traces_per_namespace_(traces_per_namespace),
        uninstalling_since_(uninstalling ? std::optional(std::chrono::system_clock::now())
                                         : std::nullopt),
        random_(std::random_device{}()) {}

  // When to look again, if ever; an error: to be tried again soon.
  Result<std::optional<std::chrono::milliseconds>> Reconcile(const ObjectKey& key);

 private:
  // What was last written to a Trace: it is newer than what the informer shows, as long as that
  // shows one of the versions before it.
  struct Written {
    std::string uid;
    std::set<std::string> older;             // versions
    std::string version;                     // after the last write
    std::optional<api::TraceStatus> status;  // nothing: it was not written
    kube::WallTime at;
  };

  // Why a Trace that is new is one too many of its namespace; "": it is not.
  [[nodiscard]] std::string WhyOneTooMany(const ObjectKey& key, const Situation& situation) const;
  Situation Look(const ObjectKey& key, const Json& object,
                 const std::vector<api::TraceSession>& sessions);
  Status Do(Situation& situation, Plan& plan);
  Status Evict(const Situation& situation, Plan& plan);
  // Returns whether the pod was there, and without the library.
  Result<bool> EvictIfStillThere(const std::string& name_space, const std::string& name);
  // Each of these two makes `trace` have the version that the API server answers with. An error
  // kConflict: someone else changed the Trace, so that the plan is out of date.
  Status WriteFinalizers(api::Trace& trace, bool want);
  Status WriteStatus(Situation& situation, Plan& plan);
  Written& NoteWrite(api::Trace& trace, const Json& answer);
  Status ApplySession(const api::Trace& trace, const api::TraceSession& session);
  Status RemoveSession(const api::TraceSession& session);
  // Lets sessions go whose Trace is gone: they count no more.
  Status ReleaseOrphans(const std::vector<api::TraceSession>& sessions,
                        const std::string& trace_uid);
  Status Announce(const api::Trace& trace, const Plan& plan, kube::WallTime now);

  kube::Client& client_;
  const ObjectCache& cache_;
  const api::RelayEndpoints relay_;
  const std::string own_namespace_;
  const std::string instance_;
  const api::LabelSelector served_namespaces_;
  const std::size_t traces_per_namespace_;
  const std::optional<kube::WallTime> uninstalling_since_;
  std::mt19937_64 random_;
  std::map<ObjectKey, Written> written_;
};

}  // namespace weft::controller

#endif  // WEFT_CONTROLLER_RECONCILE_RECONCILER_H_
