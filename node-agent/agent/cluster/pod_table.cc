// SPDX-License-Identifier: Apache-2.0
// See pod_table.h.
#include "node-agent/agent/cluster/pod_table.h"

#include <algorithm>
#include <ranges>
#include <set>

#include "lib/abi/control.h"
#include "lib/api/selector.h"
#include "lib/base/pidfd.h"
#include "node-agent/agent/base/memory_limit.h"
#include "node-agent/agent/cluster/cgroup.h"
#include "node-agent/agent/cluster/volume.h"
#include "node-agent/agent/session/ring_grant.h"

namespace weft::agent {
namespace {

std::string FileOf(std::string folder, const std::string& container, const char* suffix) {
  return folder.append("/").append(container).append(suffix);
}

SelectedPods::Reason NotStarted(const PodFacts& pod) {
  return {"NotStarted",
          "no container has started" + (pod.waiting.empty() ? "" : " (" + pod.waiting + ")")};
}

}  // namespace

std::string AttachPolicy::WhyNot(const std::string& name_space) const {
  if (!is_on)
    return "weft loads its library into running programs only where the chart's value "
           "agent.attach.enabled is true; without it, label the namespace weft.dev/inject: enabled "
           "and make the pods anew";
  if (name_space == "kube-system" || (!own_namespace.empty() && name_space == own_namespace))
    return "weft never touches the pods of kube-system and of its own namespace";
  return "";
}

bool PodTable::Attaches(const Session& session) const {
  return !session.is_cluster_wide() && session.order->spec.record.user.attach &&
         attach_.WhyNot(session.order->metadata.name_space).empty();
}

std::string PodTable::WhyNotAttached(const Session& session) const {
  const bool is_asked = !session.is_cluster_wide() && session.order->spec.record.user.attach;
  return is_asked ? attach_.WhyNot(session.order->metadata.name_space) : "";
}

bool PodTable::SelectsForUser(const Session& session, const Pod& pod) const {
  const api::PodSelection& pods = session.order->spec.record.pods;
  const auto matches = [&](const std::string& name) { return api::MatchesContainer(pods, name); };
  return SelectsForKernel(session, pod) &&
         (std::ranges::any_of(pod.facts.containers, matches) ||
          (Attaches(session) && std::ranges::any_of(pod.facts.bare, [&](const auto& bare) {
             return matches(bare.first);
           })));
}

std::vector<std::string> PodTable::ContainersOf(const Session& session, const Pod& pod) const {
  std::vector<std::string> names;
  if (!SelectsForUser(session, pod)) return names;
  const api::PodSelection& pods = session.order->spec.record.pods;
  for (const std::string& name : pod.facts.containers)
    if (pod.volume && api::MatchesContainer(pods, name)) names.push_back(name);
  if (!Attaches(session)) return names;
  for (const auto& [name, why_not] : pod.facts.bare)
    if (why_not.empty() && api::MatchesContainer(pods, name)) names.push_back(name);
  return names;
}

void PodTable::LearnMemoryLimit(Pod& pod) {
  pod.memory_limit = memory_cgroups_.MemoryLimitOfPod(pod.facts.uid);
}

void PodTable::List(std::vector<PodFacts> pods) {
  for (auto& [uid, pod] : pods_) pod.gone = true;
  for (PodFacts& pod : pods) See(std::move(pod));
  is_known_ = true;
}

void PodTable::See(PodFacts facts) {
  const std::string uid = facts.uid;
  if (facts.containers.empty() && !keeps_all_) return;
  Pod& pod = pods_[uid];
  pod.gone = false;
  // A container that is known by its id now may have been looked at before.
  if ((pod.volume || attach_.is_on) && pod.facts.ids != facts.ids)
    agent_.parts().finder.LookAgain();
  const bool limits_changed = pod.facts.memory_limits != facts.memory_limits;
  pod.facts = std::move(facts);
  if (pod.volume && limits_changed) OpenPools(pod, PathOf(pod.volume));
}

void PodTable::Lose(const std::string& uid) {
  const auto found = pods_.find(uid);
  if (found != pods_.end()) found->second.gone = true;
}

// The kubelet makes a volume between a pod's appearance and its first container's start.
bool PodTable::OpenVolumes() {
  bool any = false;
  for (auto& [uid, pod] : pods_) {
    if (pod.volume || pod.gone || pod.facts.is_over || pod.facts.containers.empty()) continue;
    const Status opened = Open(pod);
    any = any || opened;
    if (opened || opened.error().code == ErrorCode::kNotFound) continue;
    note_("pod " + pod.facts.name_space + "/" + pod.facts.name + ": " + opened.error().message);
    pod.gone = true;  // until the API server lists it again
  }
  return any;
}

Status PodTable::Open(Pod& pod) {
  AgentParts& parts = agent_.parts();
  const std::string& uid = pod.facts.uid;
  WEFT_ASSIGN(UniqueFd volume, OpenVolume(kubelet_dir_, uid));
  const std::string folder = PathOf(volume);
  OpenPools(pod, folder);
  for (const std::string& name : pod.facts.containers) {
    const std::string key = ContainerKey(uid, name);
    WEFT_TRY(parts.areas.Open(key, FileOf(folder, name, ".ctl")));
    WEFT_TRY(parts.areas.Publish(key));
  }
  WEFT_TRY(parts.doorbells.Open(uid, folder));
  parts.finder.LookAgain();
  pod.volume = std::move(volume);
  return {};
}

// Without its pool a container records all the same, in small rings.
void PodTable::OpenPools(Pod& pod, const std::string& folder) {
  const PodFacts& facts = pod.facts;
  LearnMemoryLimit(pod);
  for (const std::string& name : facts.containers) {
    const Status opened = agent_.parts().pools.Open(ContainerKey(facts.uid, name),
                                                    FileOf(folder, name, WEFT_MEMORY_POOL_SUFFIX),
                                                    RingBudget(MemoryLimitOf(pod, name)));
    if (!opened)
      note_("pod " + facts.name_space + "/" + facts.name + ": " + opened.error().message);
  }
}

uint64_t PodTable::MemoryLimitOf(const Pod& pod, const std::string& container) {
  const auto own = pod.facts.memory_limits.find(container);
  return SmallerLimit(own == pod.facts.memory_limits.end() ? 0 : own->second, pod.memory_limit);
}

void PodTable::ForgetUnused() {
  AgentParts& parts = agent_.parts();
  std::set<std::string> used;
  parts.sessions.ForEachChannel(
      [&](Session&, SessionChannel& channel) { used.insert(channel.definition.pod_uid); });
  std::erase_if(pods_, [&](const auto& entry) {
    const auto& [uid, pod] = entry;
    if (!pod.gone || used.contains(uid)) return false;
    for (const std::string& name : pod.facts.containers) {
      parts.areas.Close(ContainerKey(uid, name));
      parts.pools.Close(ContainerKey(uid, name));
    }
    for (const auto& [name, why] : pod.facts.bare) parts.areas.Close(ContainerKey(uid, name));
    return true;
  });
  for (const std::string& uid : parts.doorbells.Names())
    if (!pods_.contains(uid) && !used.contains(uid)) parts.doorbells.Close(uid);
}

bool PodTable::HasChannel(const std::string& pod_uid) const {
  bool any = false;
  agent_.parts().sessions.ForEachChannel([&](Session&, SessionChannel& channel) {
    any = any || channel.definition.pod_uid == pod_uid;
  });
  return any;
}

bool PodTable::IsAttached(const std::string& container) const {
  bool any = !agent_.parts().areas.AdoptedFor(container).empty();
  agent_.parts().sessions.ForEachChannel(
      [&](Session&, SessionChannel& channel) { any = any || channel.container == container; });
  return any;
}

// Compares the doorbell's pod and, while the kernel still knows the process, its cgroup. Containers
// that share a pod can reach each other's files anyway: if the process is gone, or the API server
// has not named the container yet, the function believes what the ring set says of its container.
// A pod may have ended while no agent ran, and is not listed any more. Its doorbell is still the
// keeper's, and its channel says that a session selected it.
bool PodTable::Belongs(const std::string& container, const CallerId& caller) {
  const std::string pod_uid = container.substr(0, container.find('/'));
  const auto pod = pods_.find(pod_uid);
  if (pod == pods_.end() && !HasChannel(pod_uid)) return false;
  if (caller.doorbell != nullptr && *caller.doorbell != pod_uid) return false;
  const auto place = PlaceOf(caller.pid);
  // The pid may be another process's by now.
  const bool is_alive = caller.pidfd != nullptr && *caller.pidfd && !HasEnded(*caller.pidfd);
  if (!place || !is_alive) return caller.doorbell != nullptr;
  if (place->pod_uid != pod_uid) return false;
  if (pod == pods_.end()) return true;
  const auto name = pod->second.facts.ids.find(place->container_id);
  return name == pod->second.facts.ids.end() || container == ContainerKey(pod_uid, name->second);
}

std::optional<std::string> PodTable::ContainerOf(int32_t pid) {
  const auto place = PlaceOf(pid);
  if (!place) return std::nullopt;
  const auto pod = pods_.find(place->pod_uid);
  if (pod == pods_.end()) return std::nullopt;
  const auto name = pod->second.facts.ids.find(place->container_id);
  if (name == pod->second.facts.ids.end()) return std::nullopt;
  const std::string key = ContainerKey(place->pod_uid, name->second);
  const bool is_told = agent_.parts().areas.Has(key) ||
                       (pod->second.facts.bare.contains(name->second) && IsAttached(key));
  return is_told ? std::optional(key) : std::nullopt;
}

std::string PodTable::OwnerOf(const std::string& container) {
  const auto pod = pods_.find(container.substr(0, container.find('/')));
  return pod == pods_.end() ? "" : pod->second.facts.name_space;
}

SelectedPods PodTable::SelectedBy(const Session& session) const {
  SelectedPods pods;
  if (session.is_cluster_wide()) return pods;
  const bool of_user = session.order->spec.record.RecordsUser();
  for (const auto& [uid, pod] : pods_) {
    if (of_user ? !SelectsForUser(session, pod) : !SelectsForKernel(session, pod)) continue;
    const bool has_volume = pod.volume.valid() || pod.facts.containers.empty();
    pods.reachable[uid] = of_user ? has_volume : pod.cgroup != 0;
    pods.names[uid] = pod.facts.name;
    for (const auto& [container, value] : pod.facts.replaced_preloads)
      if (of_user && api::MatchesContainer(session.order->spec.record.pods, container))
        pods.replaced_preloads[value].push_back(
            std::string(pod.facts.name).append("/").append(container));
    if (!of_user || !has_volume) continue;
    if (ContainersOf(session, pod).empty()) pods.untouched.insert(uid);
    const auto why_not = WhyNotAttached(session, uid, pod);
    auto why = pod.volume ? WhyWithoutLibrary(uid, pod, session.order->spec.record.pods) : why_not;
    if (Attaches(session) && !why_not) continue;
    if (why) pods.without_library[uid] = std::move(*why);
  }
  pods.attach_refusal = WhyNotAttached(session);
  return pods;
}

std::optional<SelectedPods::Reason> PodTable::WhyNotAttached(const Session& session,
                                                             const std::string& uid,
                                                             const Pod& pod) const {
  if (!Attaches(session)) return std::nullopt;
  if (session.attach_pending && !ContainersOf(session, pod).empty()) return std::nullopt;
  bool is_running = false;
  for (const auto& [name, why] : pod.facts.bare) {
    if (!api::MatchesContainer(session.order->spec.record.pods, name)) continue;
    if (session.attached.contains(ContainerKey(uid, name))) return std::nullopt;
    is_running = is_running || pod.facts.running.contains(name);
  }
  if (is_running)
    return SelectedPods::Reason{"NotAttached",
                                "the library could not be loaded into a process of the pod; the "
                                "condition ProcessesAttached has the reasons"};
  return NotStarted(pod.facts);
}

std::optional<SelectedPods::Reason> PodTable::WhyWithoutLibrary(
    const std::string& uid, const Pod& pod, const api::PodSelection& selection) const {
  bool has_started = false;
  bool is_missing = false;
  for (const std::string& name : pod.facts.containers) {
    if (!api::MatchesContainer(selection, name)) continue;
    const auto is_its = [&](const auto& id) { return id.second == name; };
    has_started = has_started || std::ranges::any_of(pod.facts.ids, is_its);
    const Finder::Sight sight = agent_.parts().finder.SightOf(ContainerKey(uid, name));
    if (sight == Finder::Sight::kMapped) return std::nullopt;
    is_missing = is_missing || sight == Finder::Sight::kMissing;
  }
  if (is_missing)
    return SelectedPods::Reason{
        "LibraryNotLoaded",
        "no process has the library in it: its program is static or setuid, or was started without "
        "the container's environment (env -i, su); keep LD_PRELOAD and WEFT_CONTAINER there, or "
        "record functions of the program with spec.kernel.userProbes"};
  if (has_started) return std::nullopt;
  return NotStarted(pod.facts);
}

bool SelectsForKernel(const Session& session, const PodTable::Pod& pod) {
  const api::PodSelection& pods = session.order->spec.record.pods;
  const auto matches = [&](const std::string& name) { return api::MatchesContainer(pods, name); };
  return !pod.gone && !pod.facts.is_over &&
         pod.facts.name_space == session.order->metadata.name_space &&
         api::Matches(pods.selector, pod.facts.labels) &&
         (pods.containers.empty() || std::ranges::any_of(pod.facts.containers, matches) ||
          std::ranges::any_of(pod.facts.bare | std::views::keys, matches));
}

}  // namespace weft::agent
