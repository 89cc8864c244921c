// SPDX-License-Identifier: Apache-2.0
// See hook_part.h.
#include "node-agent/agent/cluster/hook_part.h"

#include <algorithm>
#include <utility>

#include "node-agent/agent/cluster/cgroup.h"
#include "node-agent/agent/cluster/volume.h"

namespace weft::agent {
namespace {

std::optional<std::string> PodOf(int32_t pid) {
  auto place = PlaceOf(pid);
  return place ? std::optional(std::move(place->pod_uid)) : std::nullopt;
}

}  // namespace

void HookPart::Restored() {
  for (const auto& [uid, session] : agent_.parts().sessions.all())
    if (!session->functions().empty()) services_.try_emplace(session->order->metadata.name_space);
}

std::vector<hooks::HookedContainer> HookPart::ContainersOf(const std::string& name_space,
                                                           const Rules& rules) const {
  std::vector<hooks::HookedContainer> containers;
  for (const auto& [uid, pod] : pods_.all()) {
    if (pod.facts.name_space != name_space) continue;
    const auto add = [&, &uid = uid, &pod = pod](const std::string& name, std::string folder,
                                                 std::set<uint64_t> own_areas) {
      const auto of = rules.find(ContainerKey(uid, name));
      containers.push_back(
          {.name = pod.facts.name + "/" + name,
           .pod_uid = uid,
           .folder = std::move(folder),
           .control = name + ".ctl",
           .rules = of == rules.end() ? std::vector<hooks::HookRule>() : of->second,
           .own_areas = std::move(own_areas),
           .gives_back = !attached_.contains(ContainerKey(uid, name))});
    };
    for (const std::string& name : pod.facts.containers)
      if (pod.volume) add(name, PathOf(pod.volume), {});
    for (const auto& [name, why] : pod.facts.bare) {
      auto areas = agent_.parts().areas.AdoptedFor(ContainerKey(uid, name));
      if (!areas.empty()) add(name, "", std::move(areas));
    }
  }
  return containers;
}

HookPart::Containers HookPart::AttachedContainers() const {
  Containers attached;
  for (const auto& [uid, session] : agent_.parts().sessions.all()) {
    if (!pods_.Attaches(*session)) continue;
    for (const SessionChannel& channel : session->channels)
      if (!channel.of_kernel())
        attached.emplace(channel.container,
                         Place{session->order->metadata.name_space, channel.definition.pod_uid});
  }
  return attached;
}

// Looks which containers are attached now, and which of them wait.
void HookPart::SettleAttached() {
  const size_t done = std::erase_if(waiting_, [&](const auto& entry) {
    const auto service = services_.find(entry.second.name_space);
    return service == services_.end() || service->second == nullptr ||
           !service->second->hooks.MayBeAt(entry.second.pod_uid);
  });
  if (done != 0) may_attach_more_ = true;
  const Containers before = std::exchange(attached_, AttachedContainers());
  for (const auto& [container, place] : attached_)
    if (!before.contains(container) && !agent_.parts().areas.AdoptedFor(container).empty())
      waiting_.emplace(container, place);
  std::erase_if(waiting_, [&](const auto& entry) { return !attached_.contains(entry.first); });
}

std::set<std::string> HookPart::NamespacesWithLibrary() const {
  std::set<std::string> namespaces;
  for (const auto& [uid, pod] : pods_.all())
    for (const auto& [name, why] : pod.facts.bare)
      if (!agent_.parts().areas.AdoptedFor(ContainerKey(uid, name)).empty())
        namespaces.insert(pod.facts.name_space);
  return namespaces;
}

void HookPart::Settle() {
  const auto& sessions = agent_.parts().sessions.all();
  // Before anything is read of a service: what changes meanwhile is told by the next Poll.
  for (auto& [name_space, service] : services_)
    if (service != nullptr) service->told = service->hooks.news();
  SettleAttached();
  Rules rules;
  std::set<std::string> needed = NamespacesWithLibrary();
  for (const std::string& name_space : needed) services_.try_emplace(name_space);
  for (const auto& [uid, session] : sessions) {
    if (session->functions().empty()) continue;
    const std::string& name_space = session->order->metadata.name_space;
    needed.insert(name_space);
    services_.try_emplace(name_space);
    for (const SessionChannel& channel : session->channels) {
      if (channel.of_kernel() || channel.paused || channel.phase > ChannelPhase::kOn) continue;
      std::vector<hooks::HookRule>& of = rules[channel.container];
      of.insert(of.end(), session->functions().begin(), session->functions().end());
    }
  }
  for (auto& [name_space, service] : services_) {
    if (service == nullptr) service = std::make_unique<Service>(PodOf);
    const Status set = service->hooks.SetContainers(ContainersOf(name_space, rules));
    const std::string problem = set ? "" : set.error().message;
    if (!problem.empty() && problem != service->problem)
      note_("functions of some pods are not recorded: " + problem);
    service->problem = problem;
  }
  for (const auto& [uid, session] : sessions) {
    session->hook_notices.clear();
    session->hooks_pending = false;
    const auto service = services_.find(session->order->metadata.name_space);
    if (session->functions().empty() || service == services_.end()) continue;
    session->hooks_pending = !service->second->hooks.is_settled();
    if (!session->hooks_pending)
      session->hook_notices = service->second->hooks.Refusals(session->order->spec.trace_name);
  }
  std::erase_if(services_, [&](const auto& entry) {
    return !needed.contains(entry.first) && entry.second->hooks.is_done();
  });
}

void HookPart::LookAgain(const std::string& name_space) {
  const auto service = services_.find(name_space);
  if (service != services_.end() && service->second != nullptr) service->second->hooks.LookAgain();
}

bool HookPart::Poll() {
  for (auto& [name_space, service] : services_) {
    if (service == nullptr) continue;
    for (const std::string& line : service->hooks.TakeNotes())
      if (const auto end = notes_.Take(name_space, LogRate::Clock::now()))
        note_(std::string("namespace \"")
                  .append(name_space)
                  .append("\": ")
                  .append(line)
                  .append(*end));
  }
  const bool has_news = std::ranges::any_of(services_, [](const auto& entry) {
    return entry.second != nullptr && entry.second->told != entry.second->hooks.news();
  });
  return std::exchange(may_attach_more_, false) || has_news;
}

}  // namespace weft::agent
