// SPDX-License-Identifier: Apache-2.0
// See attach_part.h.
#include "node-agent/agent/cluster/attach_part.h"

#include <algorithm>
#include <set>
#include <utility>
#include <vector>

#include "lib/api/limits.h"
#include "lib/api/selector.h"
#include "lib/base/processes.h"
#include "node-agent/agent/cluster/container_program.h"
#include "node-agent/attach/load_library.h"

namespace weft::agent {
namespace {

// Was the session ready as its order is now?
bool WasReady(const api::TraceSession& order) {
  return order.status.observed_generation == order.metadata.generation &&
         api::IsTrue(order.status.conditions, api::kConditionReady);
}

// The library looks for its control file there, finds none, and makes an area of its own.
constexpr const char* kNoFolder = "/.weft-attached";

// The node's first process is in its mount namespace.
Status CheckProgramIn(int32_t pid, const CgroupPlace& place) {
  return CheckProgram(pid, MountNamespaceOf(1), [&place] {
    std::vector<int32_t> pids = AllProcesses();
    std::erase_if(pids, [&](int32_t other) { return PlaceOf(other) != place; });
    return pids;
  });
}

Status LoadInto(int32_t pid, const CgroupPlace& place) {
  WEFT_TRY(CheckProgramIn(pid, place));
  return attach::LoadLibrary(pid, {.library = attach::OwnLibrary(),
                                   .folder = kNoFolder,
                                   .container = "attached",
                                   .is_meant = [&place](int32_t found) {
                                     return PlaceOf(found) == place &&
                                            CheckProgramIn(found, place).has_value();
                                   }});
}

// One line for each reason: how many processes, and of which containers.
struct Refusal {
  size_t processes = 0;
  std::set<std::string> containers;
};

std::string Describe(const std::string& why, const Refusal& refusal) {
  std::string text;
  size_t named = 0;
  for (const std::string& container : refusal.containers) {
    if (named == api::limits::kSkippedPodNames) {
      text += " and " + std::to_string(refusal.containers.size() - named) + " more";
      break;
    }
    text.append(named++ == 0 ? "" : ", ").append(container);
  }
  if (refusal.processes != 0)
    text.append(": ")
        .append(std::to_string(refusal.processes))
        .append(refusal.processes == 1 ? " process" : " processes");
  return text.append(": ").append(why);
}

}  // namespace

void AttachPart::Settle() {
  std::map<std::string, std::map<std::string, std::string>> wanted;  // by namespace
  for (const auto& [uid, session] : agent_.parts().sessions.all()) {
    if (!pods_.Attaches(*session)) continue;
    for (const SessionChannel& channel : session->channels) {
      if (channel.of_kernel() || channel.phase > ChannelPhase::kOn) continue;
      const auto pod = pods_.all().find(channel.definition.pod_uid);
      if (pod == pods_.all().end()) continue;
      const auto bare = pod->second.facts.bare.find(channel.definition.container);
      if (bare == pod->second.facts.bare.end() || !bare->second.empty()) continue;
      if (!hooks_.MayAttach(channel.container)) continue;
      for (const auto& [id, name] : pod->second.facts.ids)
        if (name == channel.definition.container)
          wanted[session->order->metadata.name_space].emplace(id, pod->first);
    }
  }
  for (const auto& [name_space, containers] : wanted) {
    std::unique_ptr<Service>& service = services_[name_space];
    if (service == nullptr) service = std::make_unique<Service>(LoadInto);
  }
  for (auto& [name_space, service] : services_) {
    service->attach.SetContainers(wanted[name_space]);
    service->told = service->attach.news();
  }
  not_adopted_.clear();
  for (const auto& [uid, session] : agent_.parts().sessions.all()) Tell(*session);
  std::erase_if(services_, [&](const auto& entry) {
    return wanted[entry.first].empty() && entry.second->attach.is_done();
  });
}

void AttachPart::Tell(Session& session) {
  session.attach_notices.clear();
  session.attached.clear();
  session.attach_pending = false;
  if (!pods_.Attaches(session)) return;
  const auto service = services_.find(session.order->metadata.name_space);
  const auto outcomes = service == services_.end() ? std::map<std::string, AttachService::Outcome>()
                                                   : service->second->attach.Outcomes();
  const bool waits = std::ranges::any_of(session.channels, [&](const SessionChannel& channel) {
    return !channel.of_kernel() && !hooks_.MayAttach(channel.container);
  });
  const bool is_pending =
      waits || (service != services_.end() && !service->second->attach.is_settled());
  // Once it was ready, containers come and go.
  session.attach_pending = is_pending && !WasReady(*session.order);
  const api::PodSelection& selection = session.order->spec.record.pods;
  std::map<std::string, Refusal> refusals;  // why -> of whom
  for (const auto& [uid, pod] : pods_.all()) {
    if (!pods_.SelectsForUser(session, pod)) continue;
    for (const auto& [name, why] : pod.facts.bare)
      if (!why.empty() && api::MatchesContainer(selection, name))
        refusals[why].containers.insert(pod.facts.name + "/" + name);
    for (const auto& [id, name] : pod.facts.ids) {
      const auto bare = pod.facts.bare.find(name);
      if (bare == pod.facts.bare.end() || !bare->second.empty() ||
          !api::MatchesContainer(selection, name))
        continue;
      const auto found = outcomes.find(id);
      const AttachService::Outcome outcome =
          found == outcomes.end() ? AttachService::Outcome() : found->second;
      const std::string key = ContainerKey(uid, name);
      const bool has_area = !agent_.parts().areas.AdoptedFor(key).empty();
      const bool is_untried =
          is_pending && pod.facts.running.contains(name) && outcome == AttachService::Outcome();
      if (has_area || is_untried) session.attached.insert(key);
      if (outcome.with_library != 0 && !has_area) {
        not_adopted_.insert(key);
        if (!why_not_adopted_.empty())
          refusals[why_not_adopted_].containers.insert(pod.facts.name + "/" + name);
      }
      for (const auto& [why, processes] : outcome.refused) {
        refusals[why].processes += processes;
        refusals[why].containers.insert(pod.facts.name + "/" + name);
      }
    }
  }
  for (const auto& [why, refusal] : refusals)
    session.attach_notices.push_back(Describe(why, refusal));
}

bool AttachPart::Poll() {
  bool any = false;
  for (const auto& [name_space, service] : services_) {
    const std::vector<int32_t> changed = service->attach.TakeChanged();
    for (const int32_t pid : changed) agent_.parts().finder.AddMember(pid);
    if (changed.empty()) continue;
    hooks_.LookAgain(name_space);
    any = true;
  }
  // What is not adopted, such as an area that is one too many, records nothing. The finder finds it
  // again.
  ControlAreas& areas = agent_.parts().areas;
  if (any) {
    const Status looked = areas.LookForAreas();
    why_not_adopted_ = looked ? "" : looked.error().message;
  }
  any = any || std::ranges::any_of(not_adopted_, [&](const std::string& container) {
          return !areas.AdoptedFor(container).empty();
        });
  return any || std::ranges::any_of(services_, [](const auto& entry) {
           return entry.second->told != entry.second->attach.news();
         });
}

}  // namespace weft::agent
