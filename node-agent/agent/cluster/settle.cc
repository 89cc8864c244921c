// SPDX-License-Identifier: Apache-2.0
// What a node does about what it heard. See node.h.
#include <algorithm>

#include "lib/api/selector.h"
#include "node-agent/agent/base/limits.h"
#include "node-agent/agent/cluster/node.h"
#include "node-agent/agent/cluster/volume.h"

namespace weft::agent {
namespace {

std::string ControlFile(std::string folder, const std::string& container) {
  return folder.append("/").append(container).append(".ctl");
}

Metrics::TraceKey KeyOf(const Session& session) {
  return {session.order->metadata.name_space, session.order->spec.trace_name};
}

}  // namespace

void Node::Settle(int64_t now_ns) {
  if (!pods_known_ || !orders_known_) return;
  OpenVolumes();
  agent_.TakeArrivals();
  knows_all_ = true;
  GiveUpLate(now_ns);
  if (!settled_) {
    settled_ = true;
    for (const auto& [uid, session] : agent_.parts().sessions.all()) SettleSession(uid, *session);
    ForgetPods();
    ForgetSessions();
    counted_ns_ = 0;
  }
  Report(now_ns);
  if (now_ns - counted_ns_ >= std::chrono::nanoseconds(kCountInterval).count()) {
    counted_ns_ = now_ns;
    CountAll();
  }
}

// --- pods ----------------------------------------------------------------------------------------

// The kubelet makes a volume between a pod's appearance and its first container's start.
void Node::OpenVolumes() {
  for (auto& [uid, pod] : pods_) {
    if (pod.volume || pod.gone || pod.facts.is_over || pod.facts.containers.empty()) continue;
    const Status opened = OpenPod(pod);
    if (opened) {
      settled_ = false;
    } else if (opened.error().code != ErrorCode::kNotFound) {
      Note("pod " + pod.facts.name_space + "/" + pod.facts.name + ": " + opened.error().message);
      pod.gone = true;  // until the API server speaks of it again
    }
  }
}

Status Node::OpenPod(Pod& pod) {
  const std::string& uid = pod.facts.uid;
  WEFT_ASSIGN(UniqueFd volume, OpenVolume(kubelet_dir_, uid));
  const std::string folder = PathOf(volume);
  for (const std::string& name : pod.facts.containers) {
    const std::string key = ContainerKey(uid, name);
    WEFT_TRY(agent_.parts().areas.Open(key, ControlFile(folder, name)));
    WEFT_TRY(agent_.parts().areas.Publish(key));
  }
  WEFT_TRY(agent_.parts().doorbells.Open(uid, folder));
  agent_.parts().finder.LookAgain();
  pod.volume = std::move(volume);
  return {};
}

void Node::ForgetPods() {
  std::set<std::string> used;
  for (const auto& [uid, session] : agent_.parts().sessions.all())
    for (const SessionChannel& channel : session->channels) used.insert(channel.definition.pod_uid);
  std::erase_if(pods_, [&](const auto& entry) {
    const auto& [uid, pod] = entry;
    if (!pod.gone || used.contains(uid)) return false;
    for (const std::string& name : pod.facts.containers)
      agent_.parts().areas.Close(ContainerKey(uid, name));
    return true;
  });
  for (const std::string& uid : agent_.parts().doorbells.Names())
    if (!pods_.contains(uid) && !used.contains(uid)) agent_.parts().doorbells.Close(uid);
}

// --- sessions ------------------------------------------------------------------------------------

bool Node::Selects(const Session& session, const Pod& pod) const {
  const api::PodSelection& pods = session.order->spec.record.pods;
  return !pod.gone && !pod.facts.is_over &&
         pod.facts.name_space == session.order->metadata.name_space &&
         api::Matches(pods.selector, pod.facts.labels) &&
         std::ranges::any_of(pod.facts.containers, [&](const std::string& name) {
           return api::MatchesContainer(pods, name);
         });
}

bool Node::IsActive(const std::string& uid, const Session& session) const {
  const auto deadline = kube::ParseTime(session.order->spec.deadline);
  return session.order->spec.state == api::SessionState::kActive && !lost_.contains(uid) &&
         (!deadline || std::chrono::system_clock::now() < *deadline);
}

// Keys of the containers that the session is in force for from now on.
std::set<std::string> Node::AddUserChannels(Session& session) {
  std::set<std::string> wanted;
  if (!session.order->spec.record.RecordsUser() || session.is_cluster_wide()) return wanted;
  for (const auto& [pod_uid, pod] : pods_) {
    if (!pod.volume || !Selects(session, pod)) continue;
    for (const std::string& name : pod.facts.containers) {
      if (!api::MatchesContainer(session.order->spec.record.pods, name)) continue;
      const std::string key = ContainerKey(pod_uid, name);
      wanted.insert(key);
      const auto has = [&](const SessionChannel& c) {
        return c.container == key && c.phase <= ChannelPhase::kOn;
      };
      if (std::ranges::none_of(session.channels, has))
        session.AddChannel({key, pod.facts.name_space, pod.facts.name, pod_uid, name});
    }
  }
  return wanted;
}

void Node::SettleSession(const std::string& uid, Session& session) {
  session.RetireDrained();
  std::set<std::string> wanted;
  if (IsActive(uid, session)) wanted = AddUserChannels(session);
  const std::set<uint64_t> scope = KernelScope(session);
  if (WantsKernelChannel(uid, session, scope)) wanted.insert(kKernelKey);
  if (!wanted.empty()) agent_.parts().consumers.Start(session.order->metadata.name_space);
  agent_.parts().channels.Start(session);
  agent_.parts().channels.Stop([&](const SessionChannel& c) {
    return c.phase == ChannelPhase::kOn && (!wanted.contains(c.container) || c.outdated) &&
           session.Find(c.definition.id) != nullptr;
  });
  SettleKernelScope(session, scope);
  SettleProbes(uid, session);
}

// Nobody waits for them any more: what a relay does not take in time is lost.
void Node::GiveUpLate(int64_t now_ns) {
  for (const auto& [uid, since] : lost_) {
    const Session* session = agent_.parts().sessions.Find(uid);
    if (session == nullptr || std::chrono::nanoseconds(now_ns - since) < kLastRelayWait) continue;
    agent_.parts().channels.GiveUp(
        [&](const SessionChannel& c) { return session->Find(c.definition.id) != nullptr; }, "relay",
        "unreachable");
  }
}

// Sessions whose order is gone and whose channels are drained; then consumers that nobody needs.
void Node::ForgetSessions() {
  const auto lost = lost_;
  for (const auto& [uid, since] : lost) {
    const Session* session = agent_.parts().sessions.Find(uid);
    if (session != nullptr && !IsDrained(*session)) continue;
    lost_.erase(uid);
    written_.erase(uid);
    if (session == nullptr) continue;
    Add(ended_[KeyOf(*session)], session->Counts());
    if (ended_.size() > kMaxEndedTraces) ended_.erase(ended_.begin());
    const std::string name_space = session->order->metadata.name_space;
    agent_.parts().sessions.Remove(uid);
    const bool needed = std::ranges::any_of(agent_.parts().sessions.all(), [&](const auto& entry) {
      return entry.second->order->metadata.name_space == name_space;
    });
    if (!needed) agent_.parts().consumers.Stop(name_space);
  }
}

// --- what is said --------------------------------------------------------------------------------

SelectedPods Node::PodsOf(const Session& session) const {
  SelectedPods pods;
  if (session.is_cluster_wide()) return pods;
  const bool of_user = session.order->spec.record.RecordsUser();
  for (const auto& [uid, pod] : pods_) {
    if (of_user ? !Selects(session, pod) : !SelectsForKernel(session, pod)) continue;
    pods.reachable[uid] = of_user ? pod.volume.valid() : pod.cgroup != 0;
    pods.names[uid] = pod.facts.name;
  }
  return pods;
}

void Node::Report(int64_t now_ns) {
  const auto say = [&](const std::string& uid, const api::TraceSession& order,
                       const api::SessionStatus& status) {
    WrittenStatus& written = written_[uid];
    const bool counts_due =
        written.at_ns == 0 ||
        (now_ns - written.at_ns >= std::chrono::nanoseconds(kCountsSaid).count() &&
         !(written.status.events == status.events));
    if (!counts_due && !DiffersBeyondCounts(written.status, status)) return;
    written = {status, now_ns};
    writer_.Put(order.metadata, status);
  };
  const kube::WallTime now = std::chrono::system_clock::now();
  for (const auto& [uid, session] : agent_.parts().sessions.all()) {
    if (lost_.contains(uid) || impossible_.contains(uid)) continue;
    const KernelState& kernel = kernel_.state(session->is_cluster_wide());
    say(uid, *session->order, MakeStatus(*session, PodsOf(*session), kernel, now));
  }
  for (const auto& [uid, order] : impossible_) {
    const Session* session = agent_.parts().sessions.Find(uid);
    if (session != nullptr && !IsDrained(*session)) continue;
    say(uid, order, MakeFailedStatus(order, why_impossible_[uid], now));
  }
}

void Node::CountAll() {
  Metrics::Sums sums = ended_;
  for (const auto& [uid, session] : agent_.parts().sessions.all())
    Add(sums[KeyOf(*session)], session->Counts());
  metrics_.Set(std::move(sums));
}

}  // namespace weft::agent
