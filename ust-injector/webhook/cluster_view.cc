// SPDX-License-Identifier: Apache-2.0
// The webhook's view of the cluster.
#include "ust-injector/webhook/cluster_view.h"

namespace weft::webhook {
namespace {

using kube::At;
using kube::TextAt;

Library ReadLibrary(const Json& config_map) {
  Library library{.config_map = TextAt(config_map, {"metadata", "name"})};
  const Json* data = At(config_map, {"binaryData"});
  if (data == nullptr || !data->is_object()) return library;
  for (const auto& [key, value] : data->items()) {
    if (key.starts_with(kube::kLibraryKeyPrefix))
      library.architectures.insert(key.substr(kube::kLibraryKeyPrefix.size()));
  }
  return library;
}

std::string ArchitectureOf(const Json& node) {
  return TextAt(node, {"status", "nodeInfo", "architecture"});
}

}  // namespace

ClusterFacts ClusterView::Facts(const std::string& name_space) const {
  const std::lock_guard<std::mutex> lock(mutex_);
  ClusterFacts facts;
  const auto found = libraries_.find(name_space);
  if (found != libraries_.end() && !found->second.empty())
    facts.library = found->second.rbegin()->second;
  for (const auto& [node, architecture] : node_architectures_)
    facts.node_architectures.insert(architecture);
  return facts;
}

bool ClusterView::is_complete() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return libraries_listed_ && nodes_listed_;
}

void ClusterView::SetLibraries(const std::vector<Json>& config_maps) {
  const std::lock_guard<std::mutex> lock(mutex_);
  libraries_.clear();
  libraries_listed_ = true;
  for (const Json& config_map : config_maps) {
    Library library = ReadLibrary(config_map);
    const std::string name = library.config_map;
    libraries_[TextAt(config_map, {"metadata", "namespace"})].emplace(name, std::move(library));
  }
}

void ClusterView::ChangeLibrary(const kube::WatchEvent& event) {
  Library library = ReadLibrary(event.object);
  const std::string name = library.config_map;
  const std::lock_guard<std::mutex> lock(mutex_);
  Libraries& there = libraries_[TextAt(event.object, {"metadata", "namespace"})];
  if (event.type == kube::WatchType::kDeleted) {
    there.erase(name);
  } else {
    there.insert_or_assign(name, std::move(library));
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
  const std::string current =
      std::string(kube::kLibraryLabel) + "=" + std::string(kube::kLibraryCurrent);
  std::vector<std::unique_ptr<kube::Informer>> informers;
  informers.push_back(std::make_unique<kube::Informer>(
      client, kube::Address{.resource = kube::kConfigMaps}, kube::Selection{.labels = current},
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
