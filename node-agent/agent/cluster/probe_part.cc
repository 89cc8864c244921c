// SPDX-License-Identifier: Apache-2.0
// See probe_part.h.
#include "node-agent/agent/cluster/probe_part.h"

#include <algorithm>
#include <set>

#include "lib/api/selector.h"

namespace weft::agent {

std::vector<ProbedContainer> ProbePart::ContainersOf(const Session& session) {
  std::vector<ProbedContainer> containers;
  const api::PodSelection& selection = session.order->spec.record.pods;
  for (const auto& [uid, pod] : pods_.all()) {
    if (!SelectsForKernel(session, pod)) continue;
    std::set<std::string> ids;
    for (const auto& [id, name] : pod.facts.ids)
      if (api::MatchesContainer(selection, name)) ids.insert(id);
    for (auto& [id, folder] : kernel_.cgroups().FoldersOf(uid, ids))
      containers.push_back({id, folder, pod.facts.name + "/" + pod.facts.ids.at(id)});
  }
  return containers;
}

bool ProbePart::IsWantedBy(const Session& session) const {
  const SessionChannel* channel = session.KernelChannel();
  return channel != nullptr && channel->phase == ChannelPhase::kOn && kernel_.has_cgroups() &&
         !session.is_cluster_wide() && !session.order->spec.record.kernel.user_probes.empty();
}

void ProbePart::Settle(const std::string& uid, Session& session) {
  const bool wanted = IsWantedBy(session);
  session.probes_pending = wanted;
  session.probe_notices.clear();
  if (!wanted) return;
  const SessionChannel& channel = *session.KernelChannel();
  const std::string& name_space = session.order->metadata.name_space;
  const bool may_begin = std::ranges::none_of(probes_, [&](const auto& entry) {
    return entry.second.name_space == name_space && entry.second.search.IsGoingOn();
  });
  Probes& probes = probes_[uid];
  if (probes.channel != channel.definition.id && !probes.search.IsGoingOn())
    probes = {name_space, channel.definition.id, {}};
  if (probes.channel != channel.definition.id) return;
  const std::vector<kernel::Event> events = probes.search.Advance(
      session.order->spec.record, ContainersOf(session), may_begin, MonotonicNow());
  for (const kernel::Event& event : events) {
    const Status added = agent_.parts().kernel.AddEvent(channel, event);
    if (!added) probes.search.Refuse(event, added.error().message);
  }
  session.probes_pending = !probes.search.has_ended();
  session.probe_notices = probes.search.Notices();
}

bool ProbePart::Poll(int64_t now_ns) {
  std::erase_if(probes_, [&](const auto& entry) {
    const Session* session = agent_.parts().sessions.Find(entry.first);
    return (session == nullptr || !IsWantedBy(*session)) && !entry.second.search.IsGoingOn();
  });
  return std::ranges::any_of(probes_,
                             [&](const auto& entry) { return entry.second.search.IsDue(now_ns); });
}

}  // namespace weft::agent
