// SPDX-License-Identifier: Apache-2.0
// What a node hears and answers. See node.h; settle.cc has what it does.
#include "node-agent/agent/cluster/node.h"

#include <filesystem>

#include "lib/base/pidfd.h"
#include "node-agent/agent/base/limits.h"
#include "node-agent/agent/cluster/cgroup.h"
#include "node-agent/agent/cluster/volume.h"

namespace weft::agent {

std::string Node::Stuck() const {
  const int64_t ticked = ticked_ns_.load();
  const bool late = ticked != 0 && std::chrono::nanoseconds(MonotonicNow() - ticked) > kStuckTime;
  return late ? "the agent's loop stands still" : "";
}

std::string Node::NotReady() const {
  return knows_all_.load() ? "" : "pods and sessions are not known yet";
}

// Sessions of before; whose they are is known when pods and sessions are listed.
Status Node::Restore() {
  std::error_code error;
  for (const auto& file :
       std::filesystem::directory_iterator(agent_.parts().sessions.dir(), error)) {
    if (file.path().extension() != ".json") continue;
    const Status loaded = agent_.parts().sessions.Load(file.path().stem().string());
    if (!loaded) Note(loaded.error().message);
  }
  if (error) return Fail(ErrorCode::kIo, agent_.parts().sessions.dir() + ": " + error.message());
  agent_.parts().sessions.RenewWithoutJournal([this](const std::string& consumer) {
    return agent_.parts().consumers.Find(consumer) != nullptr;
  });
  agent_.parts().finder.SetMembership([this](int32_t pid) { return ContainerOf(pid).has_value(); });
  auto feed =
      Feed::Start(client_, name_, agent_.loop(), [this](News&& news) { Hear(std::move(news)); });
  if (!feed) return std::unexpected(feed.error());
  feed_ = std::move(*feed);
  kernel_.Start(MonotonicNow());
  metrics_.SetKernel(kernel_.state().is_ready, kernel_.state().reason);
  return {};
}

// --- who a process is ----------------------------------------------------------------------------

// By the doorbell's pod and by the cgroup, as far as the kernel still knows the process. Containers
// of one pod can reach each other's files: between these, where the kernel's word came too late or
// the API server has not named the container yet, the ring set's own word decides.
bool Node::Belongs(const std::string& container, const CallerId& caller) {
  const std::string pod_uid = container.substr(0, container.find('/'));
  const auto pod = pods_.find(pod_uid);
  if (pod == pods_.end()) return false;
  if (caller.doorbell != nullptr && *caller.doorbell != pod_uid) return false;
  const auto place = PlaceOf(caller.pid);
  // The pid may be another process's by now.
  const bool is_alive = caller.pidfd != nullptr && *caller.pidfd && !HasEnded(*caller.pidfd);
  if (!place || !is_alive) return caller.doorbell != nullptr;
  if (place->pod_uid != pod_uid) return false;
  const auto name = pod->second.facts.ids.find(place->container_id);
  return name == pod->second.facts.ids.end() || container == ContainerKey(pod_uid, name->second);
}

std::optional<std::string> Node::ContainerOf(int32_t pid) {
  const auto place = PlaceOf(pid);
  if (!place) return std::nullopt;
  const auto pod = pods_.find(place->pod_uid);
  if (pod == pods_.end()) return std::nullopt;
  const auto name = pod->second.facts.ids.find(place->container_id);
  if (name == pod->second.facts.ids.end()) return std::nullopt;
  const std::string key = ContainerKey(place->pod_uid, name->second);
  return agent_.parts().areas.Has(key) ? std::optional(key) : std::nullopt;
}

// --- news ----------------------------------------------------------------------------------------

void Node::Hear(News news) {
  settled_ = false;
  if (auto* pods = std::get_if<PodsListed>(&news)) {
    HearPods(std::move(pods->pods));
  } else if (auto* seen = std::get_if<PodSeen>(&news)) {
    SeePod(std::move(seen->pod));
  } else if (const auto* gone = std::get_if<PodGone>(&news)) {
    if (pods_.contains(gone->uid)) pods_[gone->uid].gone = true;
  } else if (auto* orders = std::get_if<OrdersListed>(&news)) {
    HearOrders(std::move(orders->orders));
  } else if (auto* order = std::get_if<OrderSeen>(&news)) {
    SeeOrder(std::move(order->order));
  } else if (const auto* lost = std::get_if<OrderGone>(&news)) {
    LoseOrder(lost->uid);
  } else if (const auto* failed = std::get_if<WatchFailed>(&news)) {
    Note("watching: " + failed->why);
  }
}

void Node::HearPods(std::vector<PodFacts> pods) {
  for (auto& [uid, pod] : pods_) pod.gone = true;
  for (PodFacts& pod : pods) SeePod(std::move(pod));
  pods_known_ = true;
}

void Node::SeePod(PodFacts facts) {
  const std::string uid = facts.uid;
  // Its kernel needs no library.
  if (facts.containers.empty() && !kernel_.is_on()) return;
  Pod& pod = pods_[uid];
  pod.gone = false;
  // A container that is known by its id now may have been looked at before.
  if (pod.volume && pod.facts.ids != facts.ids) agent_.parts().finder.LookAgain();
  pod.facts = std::move(facts);
}

void Node::HearOrders(std::vector<api::TraceSession> orders) {
  std::set<std::string> there;
  for (const api::TraceSession& order : orders) there.insert(order.metadata.uid);
  for (const auto& [uid, session] : agent_.parts().sessions.all())
    if (!there.contains(uid)) LoseOrder(uid);
  std::erase_if(impossible_, [&](const auto& entry) { return !there.contains(entry.first); });
  for (api::TraceSession& order : orders) SeeOrder(std::move(order));
  orders_known_ = true;
}

void Node::LoseOrder(const std::string& uid) {
  impossible_.erase(uid);
  if (agent_.parts().sessions.Find(uid) != nullptr) lost_.try_emplace(uid, MonotonicNow());
}

void Node::SeeOrder(api::TraceSession order) {
  const std::string uid = order.metadata.uid;
  Session* session = agent_.parts().sessions.Find(uid);
  // Only its status, which is ours.
  if (session != nullptr && session->order->spec == order.spec) {
    *session->order = std::move(order);
    return;
  }
  auto wanted = Session::FromOrder(order);
  if (!wanted) {
    why_impossible_[uid] = wanted.error().message;
    impossible_.insert_or_assign(uid, std::move(order));
    // What is recorded by an earlier version of the order goes on, unless that ends it.
    if (session != nullptr) session->order->spec.state = impossible_[uid].spec.state;
    return;
  }
  impossible_.erase(uid);
  if (session == nullptr) {
    const Status added = agent_.parts().sessions.Add(uid, std::move(*wanted));
    if (!added) Note(added.error().message);
    return;
  }
  std::set<std::string> containers;
  for (const SessionChannel& channel : session->channels) containers.insert(channel.container);
  const auto request = [](const Session& of) {
    return of.order->spec.record.kernel.statedump_request;
  };
  const bool is_state_asked_for = request(*session) != request(*wanted);
  const bool fits = session->Change(std::move(*wanted));
  session->kernel_refusal.clear();
  // Channels of another layout end; Settle makes new ones.
  agent_.parts().channels.Stop([&](const SessionChannel& c) {
    return c.phase == ChannelPhase::kOn && (c.of_kernel() ? c.outdated : !fits) &&
           session->Find(c.definition.id) != nullptr;
  });
  agent_.parts().kernel.ApplyPaused(*session);
  // Before the order is on disk: an agent that dies here leaves it to the next one.
  if (is_state_asked_for) agent_.parts().kernel.DumpState(*session);
  if (const Status saved = agent_.parts().sessions.Save(*session); !saved)
    Note(saved.error().message);
  for (const std::string& key : containers)
    if (const Status published = agent_.parts().areas.Publish(key); !published)
      Note(published.error().message);
}

// --- what became of it ---------------------------------------------------------------------------

void Node::SessionChanged(Session&) { settled_ = false; }

void Node::ChannelFailed(Session& session, const std::string& why) {
  Note("Trace \"" + session.order->spec.trace_name + "\": " + why);
}

void Node::ConsumerFailed(const std::string& consumer, const std::string& why) {
  Note("the consumer of namespace \"" + consumer + "\" keeps failing: " + why);
}

void Node::Tick(int64_t now_ns) {
  ticked_ns_ = now_ns;
  if (agent_.is_ending()) return;
  PollKernel(now_ns);
  PollProbes(now_ns);
  Settle(now_ns);
}

void Node::Note(std::string text) { agent_.ToKeeper(ipc::Notice{"weft-agent", std::move(text)}); }

}  // namespace weft::agent
