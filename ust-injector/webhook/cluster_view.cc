// SPDX-License-Identifier: Apache-2.0
// The webhook's view of the cluster.
#include "ust-injector/webhook/cluster_view.h"

namespace weft::webhook {
namespace {

using kube::At;
using kube::TextAt;

bool IsReference(const Json& config_map) {
  return TextAt(config_map, {"metadata", "labels", kube::kLibraryLabel}) == kube::kLibraryReference;
}

std::string ArchitectureOf(const Json& node) {
  return TextAt(node, {"status", "nodeInfo", "architecture"});
}

}  // namespace

ClusterView::Candidate ClusterView::Read(const Json& config_map) {
  Candidate candidate{.architectures = {},
                      .digest = kube::DigestOf(config_map),
                      .sets_preload = At(config_map, {"data"}) != nullptr};
  const Json* data = At(config_map, {"binaryData"});
  if (data == nullptr || !data->is_object()) return candidate;
  for (const auto& [key, value] : data->items()) {
    if (key.starts_with(kube::kLibraryKeyPrefix))
      candidate.architectures.insert(key.substr(kube::kLibraryKeyPrefix.size()));
  }
  return candidate;
}

ClusterFacts ClusterView::Facts(const std::string& name_space) const {
  const std::lock_guard<std::mutex> lock(mutex_);
  ClusterFacts facts;
  const auto found = candidates_.find(name_space);
  if (found != candidates_.end()) {
    for (const auto& [name, candidate] : found->second) {
      const auto reference = references_.find(name);
      const bool is_genuine = reference != references_.end() && !candidate.digest.empty() &&
                              reference->second == candidate.digest;
      if (is_genuine) {
        facts.library = Library{name, candidate.architectures, candidate.sets_preload};
      } else {
        facts.untrusted = name;
      }
    }
  }
  for (const auto& [node, architecture] : node_architectures_)
    facts.node_architectures.insert(architecture);
  return facts;
}

bool ClusterView::is_complete() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return libraries_listed_ && nodes_listed_ && !references_.empty();
}

void ClusterView::SetLibraries(const std::vector<Json>& config_maps) {
  std::map<std::string, Candidates> candidates;
  std::map<std::string, std::string> references;
  for (const Json& config_map : config_maps) {
    const std::string name = TextAt(config_map, {"metadata", "name"});
    const std::string name_space = TextAt(config_map, {"metadata", "namespace"});
    if (name_space != own_namespace_) {
      candidates[name_space].emplace(name, Read(config_map));
    } else if (IsReference(config_map)) {
      references.emplace(name, TextAt(config_map, {"data", kube::kDigestKey}));
    }
  }
  const std::lock_guard<std::mutex> lock(mutex_);
  candidates_ = std::move(candidates);
  references_ = std::move(references);
  libraries_listed_ = true;
}

void ClusterView::ChangeLibrary(const kube::WatchEvent& event) {
  const std::string name = TextAt(event.object, {"metadata", "name"});
  const std::string name_space = TextAt(event.object, {"metadata", "namespace"});
  const bool is_own = name_space == own_namespace_;
  if (event.type == kube::WatchType::kDeleted) {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (is_own) {
      references_.erase(name);
    } else if (const auto found = candidates_.find(name_space); found != candidates_.end()) {
      found->second.erase(name);
    }
    return;
  }
  if (is_own && !IsReference(event.object)) return;
  Candidate candidate = is_own ? Candidate() : Read(event.object);
  const std::lock_guard<std::mutex> lock(mutex_);
  if (is_own) {
    references_.insert_or_assign(name, TextAt(event.object, {"data", kube::kDigestKey}));
  } else {
    candidates_[name_space].insert_or_assign(name, std::move(candidate));
  }
}

void ClusterView::SetNodes(const std::vector<Json>& nodes) {
  const std::lock_guard<std::mutex> lock(mutex_);
  node_architectures_.clear();
  nodes_listed_ = true;
  for (const Json& node : nodes)
    node_architectures_.emplace(TextAt(node, {"metadata", "name"}), ArchitectureOf(node));
}

void ClusterView::ChangeNode(const kube::WatchEvent& event) {
  const std::string name = TextAt(event.object, {"metadata", "name"});
  const std::lock_guard<std::mutex> lock(mutex_);
  if (event.type == kube::WatchType::kDeleted) {
    node_architectures_.erase(name);
  } else {
    node_architectures_.insert_or_assign(name, ArchitectureOf(event.object));
  }
}

std::vector<std::unique_ptr<kube::Informer>> Feed(
    ClusterView& view, kube::Client& client, const std::function<void(const Error&)>& on_error) {
  const std::string wanted = std::string(kube::kLibraryLabel) + " in (" +
                             std::string(kube::kLibraryCurrent) + "," +
                             std::string(kube::kLibraryReference) + ")";
  std::vector<std::unique_ptr<kube::Informer>> informers;
  informers.push_back(std::make_unique<kube::Informer>(
      client, kube::Address{.resource = kube::kConfigMaps}, kube::Selection{.labels = wanted},
      kube::InformerHandlers{
          .on_list = [&view](const std::vector<Json>& all) { view.SetLibraries(all); },
          .on_event = [&view](const kube::WatchEvent& event) { view.ChangeLibrary(event); },
          .on_error = on_error}));
  informers.push_back(std::make_unique<kube::Informer>(
      client, kube::Address{.resource = kube::kNodes}, kube::Selection{},
      kube::InformerHandlers{
          .on_list = [&view](const std::vector<Json>& all) { view.SetNodes(all); },
          .on_event = [&view](const kube::WatchEvent& event) { view.ChangeNode(event); },
          .on_error = on_error}));
  return informers;
}

}  // namespace weft::webhook
