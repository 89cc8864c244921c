// SPDX-License-Identifier: Apache-2.0
// The controller's memory of the cluster.
#include "controller/object_cache.h"

#include <algorithm>

#include "lib/kube/library.h"

namespace weft::controller {
namespace {

using kube::TextAt;

// Pods come in groups; one look at a Trace for all of them is enough.
constexpr std::chrono::milliseconds kGather{20};

struct Source {
  kube::Resource resource;
  std::string labels;
};

Source SourceOf(ObjectCache::Kind kind) {
  switch (kind) {
    case ObjectCache::kTraces:
      return {kube::kTraces, ""};
    case ObjectCache::kClusterTraces:
      return {kube::kClusterTraces, ""};
    case ObjectCache::kSessions:
      return {kube::kTraceSessions, ""};
    case ObjectCache::kPods:
      return {kube::kPods, ""};
    case ObjectCache::kNodes:
      return {kube::kNodes, ""};
    case ObjectCache::kNamespaces:
      return {kube::kNamespaces, ""};
    case ObjectCache::kLibraries:
    case ObjectCache::kKinds:
      break;
  }
  return {kube::kConfigMaps, std::string(kube::kLibraryLabel)};
}

// Returns the key of the Trace that a session belongs to.
ObjectKey TraceOf(const std::string& name_space, const std::string& trace, bool cluster_wide) {
  return {cluster_wide ? "" : name_space, trace};
}

template <typename Map>
typename Map::mapped_type Find(const Map& map, const std::string& key) {
  const auto found = map.find(key);
  return found == map.end() ? typename Map::mapped_type() : found->second;
}

}  // namespace

void ObjectCache::Put(Kind kind, const Json& object) {
  const ObjectKey key = KeyOf(object);
  switch (kind) {
    case kTraces:
    case kClusterTraces:
      traces_.insert_or_assign(key, object);
      break;
    case kSessions:
      // A session that cannot be read was not made by a controller of weft: it is ignored.
      if (auto session = api::ParseSession(object.dump(), {.refuse_unknown_fields = false}))
        sessions_.insert_or_assign(key, std::move(*session));
      break;
    case kPods:
      pods_[key.name_space].insert_or_assign(key.name, ReadPod(object));
      break;
    case kNodes:
      nodes_.insert_or_assign(key.name, ReadNode(object));
      break;
    case kNamespaces:
      namespaces_.insert_or_assign(key.name, ReadNamespace(object));
      break;
    case kLibraries:
      libraries_[key.name_space][key.name] = {
          .is_current =
              TextAt(object, {"metadata", "labels", kube::kLibraryLabel}) == kube::kLibraryCurrent,
          .is_intact = kube::LibraryName(kube::DigestOf(object)) == key.name};
      break;
    case kKinds:
      break;
  }
}

void ObjectCache::Remove(Kind kind, const Json& object) {
  const ObjectKey key = KeyOf(object);
  switch (kind) {
    case kTraces:
    case kClusterTraces:
      traces_.erase(key);
      break;
    case kSessions:
      sessions_.erase(key);
      break;
    case kPods:
      pods_[key.name_space].erase(key.name);
      break;
    case kNodes:
      nodes_.erase(key.name);
      break;
    case kNamespaces:
      namespaces_.erase(key.name);
      pods_.erase(key.name);
      libraries_.erase(key.name);
      break;
    case kLibraries:
      libraries_[key.name_space].erase(key.name);
      break;
    case kKinds:
      break;
  }
}

void ObjectCache::Clear(Kind kind) {
  switch (kind) {
    case kTraces:
    case kClusterTraces:
      std::erase_if(traces_, [kind](const auto& entry) {
        return entry.first.name_space.empty() == (kind == kClusterTraces);
      });
      return;
    case kSessions:
      return sessions_.clear();
    case kPods:
      return pods_.clear();
    case kNodes:
      return nodes_.clear();
    case kNamespaces:
      return namespaces_.clear();
    case kLibraries:
      return libraries_.clear();
    case kKinds:
      return;
  }
}

void ObjectCache::AskForTracesOf(const std::string& name_space) {
  for (const auto& [key, trace] : traces_) {
    if (name_space.empty() || key.name_space == name_space)
      queue_.Add({WorkKind::kTrace, key}, kGather);
  }
}

void ObjectCache::Ask(Kind kind, const Json& object) {
  const ObjectKey key = KeyOf(object);
  switch (kind) {
    case kTraces:
    case kClusterTraces:
      return queue_.Add({WorkKind::kTrace, key});
    case kSessions: {
      const Json* wide = kube::At(object, {"spec", "clusterWide"});
      const std::string trace = TextAt(object, {"spec", "traceName"});
      return queue_.Add({WorkKind::kTrace, TraceOf(key.name_space, trace, wide && *wide == true)},
                        kGather);
    }
    case kPods:
      AskForTracesOf(key.name_space);
      // A pod that wants the library where its namespace does not.
      if (!TextAt(object, {"metadata", "labels", kube::kInjectLabel}).empty())
        queue_.Add({WorkKind::kNamespace, {"", key.name_space}});
      return;
    case kNodes:
      return AskForTracesOf("");
    case kNamespaces:
      AskForTracesOf(key.name);
      return queue_.Add({WorkKind::kNamespace, {"", key.name}});
    case kLibraries:
      return queue_.Add({WorkKind::kNamespace, {"", key.name_space}});
    case kKinds:
      return;
  }
}

void ObjectCache::Replace(Kind kind, const std::vector<Json>& objects) {
  const std::lock_guard<std::mutex> lock(mutex_);
  Clear(kind);
  listed_.at(kind) = true;
  for (const Json& object : objects) {
    Put(kind, object);
    Ask(kind, object);
  }
  // What vanished meanwhile concerns them all.
  AskForTracesOf("");
  for (const auto& [name, facts] : namespaces_) queue_.Add({WorkKind::kNamespace, {"", name}});
}

void ObjectCache::Change(Kind kind, const kube::WatchEvent& event) {
  const std::lock_guard<std::mutex> lock(mutex_);
  const ObjectKey key = KeyOf(event.object);
  // A kubelet reports every node every few seconds; coming, going and labels are news.
  const auto node = kind == kNodes ? nodes_.find(key.name) : nodes_.end();
  const bool is_news = node == nodes_.end() || event.type == kube::WatchType::kDeleted ||
                       !(node->second == ReadNode(event.object));
  if (event.type == kube::WatchType::kDeleted) {
    Remove(kind, event.object);
  } else {
    Put(kind, event.object);
  }
  if (is_news) Ask(kind, event.object);
}

bool ObjectCache::is_complete() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return std::ranges::all_of(listed_, std::identity());
}

std::optional<Json> ObjectCache::Trace(const ObjectKey& key) const {
  const std::lock_guard<std::mutex> lock(mutex_);
  const auto found = traces_.find(key);
  if (found == traces_.end()) return std::nullopt;
  return found->second;
}

std::vector<Json> ObjectCache::Traces() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  std::vector<Json> out;
  out.reserve(traces_.size());
  for (const auto& [key, trace] : traces_) out.push_back(trace);
  return out;
}

std::map<std::string, int> ObjectCache::Phases() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  std::map<std::string, int> phases;
  for (const auto& [key, trace] : traces_) ++phases[TextAt(trace, {"status", "phase"})];
  return phases;
}

std::size_t ObjectCache::CountOlder(const ObjectKey& trace, std::size_t most) const {
  const auto age = [](const Json& one) {
    return std::pair(TextAt(one, {"metadata", "creationTimestamp"}),
                     TextAt(one, {"metadata", "uid"}));
  };
  const std::lock_guard<std::mutex> lock(mutex_);
  const auto found = traces_.find(trace);
  if (found == traces_.end()) return 0;
  const auto own = age(found->second);
  std::size_t older = 0;
  for (auto at = traces_.lower_bound({trace.name_space, ""});
       at != traces_.end() && at->first.name_space == trace.name_space && older < most; ++at) {
    if (age(at->second) < own) ++older;
  }
  return older;
}

std::vector<api::TraceSession> ObjectCache::Sessions(const ObjectKey& trace) const {
  const std::lock_guard<std::mutex> lock(mutex_);
  std::vector<api::TraceSession> out;
  for (const auto& [key, session] : sessions_) {
    if (TraceOf(key.name_space, session.spec.trace_name, session.spec.cluster_wide) == trace)
      out.push_back(session);
  }
  return out;
}

std::vector<PodFacts> ObjectCache::Pods(const std::string& name_space) const {
  const std::lock_guard<std::mutex> lock(mutex_);
  std::vector<PodFacts> out;
  const auto found = pods_.find(name_space);
  if (found == pods_.end()) return out;
  out.reserve(found->second.size());
  for (const auto& [name, pod] : found->second) out.push_back(pod);
  return out;
}

std::map<std::string, NodeFacts> ObjectCache::Nodes() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return nodes_;
}

NamespaceFacts ObjectCache::Namespace(const std::string& name) const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return Find(namespaces_, name);
}

LibraryMaps ObjectCache::Libraries(const std::string& name_space) const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return Find(libraries_, name_space);
}

std::vector<std::unique_ptr<kube::Informer>> Feed(
    ObjectCache& cache, kube::Client& client, const std::function<void(const Error&)>& on_error) {
  std::vector<std::unique_ptr<kube::Informer>> informers;
  for (int i = 0; i < ObjectCache::kKinds; ++i) {
    const auto kind = static_cast<ObjectCache::Kind>(i);
    const Source source = SourceOf(kind);
    informers.push_back(std::make_unique<kube::Informer>(
        client, kube::Address{.resource = source.resource},
        kube::Selection{.labels = source.labels},
        kube::InformerHandlers{
            .on_list = [&cache, kind](const std::vector<Json>& all) { cache.Replace(kind, all); },
            .on_event = [&cache, kind](const kube::WatchEvent& e) { cache.Change(kind, e); },
            .on_error = on_error}));
  }
  return informers;
}

}  // namespace weft::controller
