// SPDX-License-Identifier: Apache-2.0
// A cache of the objects that informers show. Informers update it on their threads; the worker
// thread reads it. Each change tells which work it causes.
#ifndef WEFT_CONTROLLER_OBJECT_CACHE_H_
#define WEFT_CONTROLLER_OBJECT_CACHE_H_

#include <array>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "controller/reconcile/facts.h"
#include "controller/work.h"
#include "lib/api/session.h"
#include "lib/kube/informer.h"

namespace weft::controller {

struct LibraryFacts {
  bool is_current = false;  // labelled as the one for new pods
  bool is_intact = false;   // its content is the one that its name stands for, and stays
  bool operator==(const LibraryFacts&) const = default;
};

// The library's ConfigMaps of a namespace, by name.
using LibraryMaps = std::map<std::string, LibraryFacts>;

class ObjectCache {
 public:
  // The kinds of objects it is fed with.
  enum Kind { kTraces, kClusterTraces, kSessions, kPods, kNodes, kNamespaces, kLibraries, kKinds };

  explicit ObjectCache(WorkQueue& queue) : queue_(queue) {}

  // All objects of a kind, and one that changed. For informers.
  void Replace(Kind kind, const std::vector<Json>& objects);
  void Change(Kind kind, const kube::WatchEvent& event);

  // Whether each kind was listed once: before, nothing can be decided.
  bool is_complete() const;

  // Here and below a ClusterTrace is a Trace without a namespace.
  std::optional<Json> Trace(const ObjectKey& key) const;
  std::vector<Json> Traces() const;
  // How many Traces have each phase of status.phase.
  std::map<std::string, int> Phases() const;
  // Counts the Traces of a Trace's namespace that were made before it, up to `most`.
  std::size_t CountOlder(const ObjectKey& trace, std::size_t most) const;
  std::vector<api::TraceSession> Sessions(const ObjectKey& trace) const;
  std::vector<PodFacts> Pods(const std::string& name_space) const;
  std::map<std::string, NodeFacts> Nodes() const;
  NamespaceFacts Namespace(const std::string& name) const;
  LibraryMaps Libraries(const std::string& name_space) const;

 private:
  void Put(Kind kind, const Json& object);
  void Remove(Kind kind, const Json& object);
  void Clear(Kind kind);
  // The work that a change of this object makes; with the lock held.
  void Ask(Kind kind, const Json& object);
  void AskForTracesOf(const std::string& name_space);

  WorkQueue& queue_;
  mutable std::mutex mutex_;
  std::array<bool, kKinds> listed_ = {};
  std::map<ObjectKey, Json> traces_;
  std::map<ObjectKey, api::TraceSession> sessions_;
  std::map<std::string, std::map<std::string, PodFacts>> pods_;  // by namespace, name
  std::map<std::string, NodeFacts> nodes_;
  std::map<std::string, NamespaceFacts> namespaces_;
  std::map<std::string, LibraryMaps> libraries_;  // by namespace
};

// Makes the informers that keep `cache` as the cluster is.
std::vector<std::unique_ptr<kube::Informer>> Feed(
    ObjectCache& cache, kube::Client& client, const std::function<void(const Error&)>& on_error);

}  // namespace weft::controller

#endif  // WEFT_CONTROLLER_OBJECT_CACHE_H_
