// SPDX-License-Identifier: Apache-2.0
// See node.h.
#include "node-agent/agent/cluster/node.h"

#include <algorithm>
#include <filesystem>

#include "lib/api/selector.h"
#include "node-agent/agent/base/limits.h"

namespace weft::agent {

Node::Node(Agent& agent, kube::Client& client, std::string name, std::string kubelet_dir,
           KernelOptions kernel, kernel::Host host, AttachPolicy attach)
    : agent_(agent),
      client_(client),
      name_(std::move(name)),
      reports_(client),
      pods_(agent, std::move(kubelet_dir), kernel.is_on, std::move(attach),
            [this](std::string text) { Note(std::move(text)); }),
      kernel_(agent, pods_, std::move(kernel), std::move(host),
              [this](std::string text) { Note(std::move(text)); }),
      probes_(agent, pods_, kernel_.support()),
      hooks_(agent, pods_, [this](std::string text) { Note(std::move(text)); }),
      attach_(agent, pods_, hooks_),
      events_(agent, pods_) {}

// An agent that follows goes on from the counts that the consumers told last.
Node::~Node() {
  if (feed_ == nullptr) return;  // it did not begin
  SessionStore& sessions = agent_.parts().sessions;
  for (const auto& [uid, session] : sessions.all()) sessions.SaveOrNote(*session);
}

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
  AgentParts& parts = agent_.parts();
  std::error_code error;
  for (const auto& file : std::filesystem::directory_iterator(parts.sessions.dir(), error)) {
    if (file.path().extension() != ".json") continue;
    const Status loaded = parts.sessions.Load(file.path().stem().string());
    if (!loaded) Note(loaded.error().message);
  }
  if (error) return Fail(ErrorCode::kIo, parts.sessions.dir() + ": " + error.message());
  std::set<std::string> namespaces;
  for (const auto& [uid, session] : parts.sessions.all())
    namespaces.insert(session->order->metadata.name_space);
  WEFT_TRY(parts.consumers.TakeFromDisk(namespaces));
  parts.sessions.RenewWithoutJournal(
      [&](const std::string& consumer) { return parts.consumers.Find(consumer) != nullptr; });
  absence_.emplace(std::filesystem::path(parts.sessions.dir()).replace_filename("present"));
  // The keeper answers for an agent that is started again.
  if (agent_.recoveries() == 0) absent_since_ = absence_->Since(std::chrono::system_clock::now());
  for (const auto& [uid, session] : parts.sessions.all()) restored_.insert(uid);
  hooks_.Restored();
  parts.finder.SetMembership([this](int32_t pid) { return pods_.ContainerOf(pid); });
  auto feed =
      Feed::Start(client_, name_, agent_.loop(), [this](News&& news) { Hear(std::move(news)); });
  if (!feed) return std::unexpected(feed.error());
  feed_ = std::move(*feed);
  kernel_.Start(MonotonicNow());
  const KernelState& state = kernel_.support().state();
  reports_.metrics().SetKernel(state.is_ready, state.reason);
  return {};
}

// --- news ----------------------------------------------------------------------------------------

void Node::Hear(News news) {
  settled_ = false;
  if (auto* pods = std::get_if<PodsListed>(&news)) {
    pods_.List(std::move(pods->pods));
  } else if (auto* seen = std::get_if<PodSeen>(&news)) {
    pods_.See(std::move(seen->pod));
  } else if (const auto* gone = std::get_if<PodGone>(&news)) {
    pods_.Lose(gone->uid);
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
  const std::string foreign = own_namespace_.empty() ? "" : api::WhyForeign(order, own_namespace_);
  // Only its status, which is ours.
  if (foreign.empty() && session != nullptr && session->order->spec == order.spec) {
    *session->order = std::move(order);
    return;
  }
  auto wanted = foreign.empty() ? Session::FromOrder(order)
                                : Result<Session>(Fail(ErrorCode::kPermission, foreign));
  if (!wanted) {
    why_impossible_[uid] = wanted.error().message;
    impossible_.insert_or_assign(uid, std::move(order));
    // What is recorded by an earlier version of the order goes on, unless that ends it. A foreign
    // one ends: an agent that did not refuse it may have begun it.
    if (session != nullptr)
      session->order->spec.state =
          foreign.empty() ? impossible_[uid].spec.state : api::SessionState::kDraining;
    return;
  }
  impossible_.erase(uid);
  if (session == nullptr) {
    const Status added = agent_.parts().sessions.Add(uid, std::move(*wanted));
    if (!added) Note(added.error().message);
    return;
  }
  ChangeSession(*session, std::move(*wanted));
}

void Node::ChangeSession(Session& session, Session&& newer) {
  AgentParts& parts = agent_.parts();
  std::set<std::string> containers;
  for (const SessionChannel& channel : session.channels) containers.insert(channel.container);
  const auto request = [](const Session& of) {
    return of.order->spec.record.kernel.statedump_request;
  };
  const bool is_state_asked_for = request(session) != request(newer);
  const bool fits = session.Change(std::move(newer));
  session.kernel_refusal.clear();
  // Channels of another layout end; Settle makes new ones.
  parts.channels.Stop([&](const SessionChannel& c) {
    return c.phase == ChannelPhase::kOn && (c.of_kernel() ? c.outdated : !fits) &&
           session.Find(c.definition.id) != nullptr;
  });
  parts.kernel.ApplyPaused(session);
  // Before the order is on disk: an agent that dies here leaves it to the next one.
  if (is_state_asked_for) parts.kernel.DumpState(session);
  parts.sessions.SaveOrNote(session);
  parts.areas.PublishOrNote(containers);
}

// --- settling ------------------------------------------------------------------------------------

void Node::Tick(int64_t now_ns) {
  ticked_ns_ = now_ns;
  if (agent_.is_ending()) return;
  // What announces nothing is looked at.
  const KernelPart::Polled kernel = kernel_.Poll(now_ns);
  if (kernel.state_changed) {
    const KernelState& state = kernel_.support().state();
    reports_.metrics().SetKernel(state.is_ready, state.reason);
  }
  const bool probes_due = probes_.Poll(now_ns);
  const bool attach_due = attach_.Poll();
  const bool hooks_due = hooks_.Poll();
  const bool events_due = events_.Poll(now_ns);
  if (kernel.is_due || probes_due || attach_due || hooks_due || events_due) settled_ = false;
  Settle(now_ns);
}

void Node::Settle(int64_t now_ns) {
  if (!pods_.is_known() || !orders_known_) return;
  const SessionStore& sessions = agent_.parts().sessions;
  if (pods_.OpenVolumes()) settled_ = false;
  agent_.TakeArrivals();
  knows_all_ = true;
  NotePresence(now_ns);
  GiveUpLate(now_ns);
  const bool was_settled = settled_;
  if (!settled_) {
    settled_ = true;
    // Hooks first: a process calls for them as soon as its control file has functions.
    std::map<std::string, std::set<std::string>> wanted;  // of active sessions
    for (const auto& [uid, session] : sessions.all()) {
      session->RetireDrained();
      if (IsActive(uid, *session)) wanted.emplace(uid, AddUserChannels(*session));
    }
    hooks_.Settle();
    for (const auto& [uid, session] : sessions.all()) {
      const auto of = wanted.find(uid);
      SettleSession(uid, *session, of == wanted.end() ? nullptr : &of->second);
    }
    attach_.Settle();
    hooks_.Settle();
    pods_.ForgetUnused();
    ForgetSessions();
  }
  Report(now_ns);
  reports_.Count(sessions, !was_settled, now_ns);
}

void Node::NotePresence(int64_t now_ns) {
  if (!absence_) return;  // not restored yet
  if (const Status stamped = absence_->Stamp(now_ns); !stamped) Note(stamped.error().message);
  if (!absent_since_) return;
  const std::string span = DescribeSpan(*absent_since_, std::chrono::system_clock::now());
  absent_since_.reset();
  for (const std::string& uid : restored_) {
    Session* session = agent_.parts().sessions.Find(uid);
    if (session == nullptr || !IsActive(uid, *session)) continue;
    std::vector<std::string>& absences = session->absences;
    if (absences.size() == kMaxTimesAway) absences.erase(absences.begin());
    absences.push_back(span);
    agent_.parts().sessions.SaveOrNote(*session);
  }
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
  for (auto& [pod_uid, pod] : pods_.all()) {
    for (const std::string& name : pods_.ContainersOf(session, pod)) {
      const std::string key = ContainerKey(pod_uid, name);
      wanted.insert(key);
      const auto has = [&](const SessionChannel& c) {
        return c.container == key && c.phase <= ChannelPhase::kOn;
      };
      if (std::ranges::any_of(session.channels, has)) continue;
      if (pod.facts.bare.contains(name)) pods_.LearnMemoryLimit(pod);
      session.AddChannel({key, pod.facts.name_space, pod.facts.name, pod_uid, name,
                          PodTable::MemoryLimitOf(pod, name)});
    }
  }
  return wanted;
}

// `user`: what AddUserChannels returned; nullptr: the session is not active.
void Node::SettleSession(const std::string& uid, Session& session,
                         const std::set<std::string>* user) {
  AgentParts& parts = agent_.parts();
  std::set<std::string> wanted;
  if (user != nullptr) wanted = *user;
  const std::set<uint64_t> scope = kernel_.Scope(session);
  if (user != nullptr && kernel_.WantsChannel(uid, session, scope)) wanted.insert(kKernelKey);
  if (!wanted.empty()) parts.consumers.Start(session.order->metadata.name_space);
  parts.channels.Start(session);
  parts.channels.Stop([&](const SessionChannel& c) {
    return c.phase == ChannelPhase::kOn && (!wanted.contains(c.container) || c.outdated) &&
           session.Find(c.definition.id) != nullptr;
  });
  kernel_.SettleScope(session, scope);
  probes_.Settle(uid, session);
  events_.Settle(uid, session);
}

// Gives up on sessions whose TraceSession was deleted: after kLastRelayWait, what their relay did
// not take counts as lost (relay/unreachable, relay/refused).
void Node::GiveUpLate(int64_t now_ns) {
  for (const auto& [uid, since] : lost_) {
    const Session* session = agent_.parts().sessions.Find(uid);
    if (session == nullptr || std::chrono::nanoseconds(now_ns - since) < kLastRelayWait) continue;
    agent_.parts().channels.GiveUp(
        [&](const SessionChannel& c) { return session->Find(c.definition.id) != nullptr; }, "relay",
        session->LossAtRelay());
  }
}

// Removes sessions whose order is gone and whose channels are drained; then consumers that no
// session needs.
void Node::ForgetSessions() {
  AgentParts& parts = agent_.parts();
  const auto lost = lost_;
  for (const auto& [uid, since] : lost) {
    const Session* session = parts.sessions.Find(uid);
    if (session != nullptr && !IsDrained(*session)) continue;
    lost_.erase(uid);
    reports_.Forget(uid);
    if (session == nullptr) continue;
    reports_.Retire(*session);
    const std::string name_space = session->order->metadata.name_space;
    parts.sessions.Remove(uid);
    const bool needed = std::ranges::any_of(parts.sessions.all(), [&](const auto& entry) {
      return entry.second->order->metadata.name_space == name_space;
    });
    if (!needed) parts.consumers.Stop(name_space);
  }
}

// --- reports -------------------------------------------------------------------------------------

void Node::Report(int64_t now_ns) {
  const kube::WallTime now = std::chrono::system_clock::now();
  SessionStore& sessions = agent_.parts().sessions;
  for (const auto& [uid, session] : sessions.all()) {
    if (lost_.contains(uid) || impossible_.contains(uid)) continue;
    const KernelState& kernel = kernel_.support().state(session->is_cluster_wide());
    const std::string trouble = deaths_.Describe(session->order->metadata.name_space, now_ns);
    reports_.Report(*session->order,
                    MakeStatus(*session, pods_.SelectedBy(*session), kernel, now, trouble), now_ns,
                    [&, &of = *session] { sessions.SaveOrNote(of); });
  }
  for (const auto& [uid, order] : impossible_) {
    const Session* session = sessions.Find(uid);
    if (session != nullptr && !IsDrained(*session)) continue;
    reports_.Report(order, MakeFailedStatus(order, why_impossible_[uid], now, session), now_ns);
  }
}

// --- events of the agent -------------------------------------------------------------------------

void Node::SessionChanged(Session&) { settled_ = false; }

void Node::ChannelFailed(Session& session, const std::string& why) {
  Note("Trace \"" + session.order->spec.trace_name + "\": " + why);
}

void Node::ConsumerOutOfMemory(const std::string& consumer, const std::string& why) {
  deaths_.Add(consumer, why, MonotonicNow());
  reports_.metrics().CountOutOfMemory(consumer);
}

void Node::ConsumerFailed(const std::string& consumer, const std::string& why) {
  Note("the consumer of namespace \"" + consumer + "\" keeps failing: " + why);
}

void Node::Note(std::string text) {
  agent_.ToKeeper(ipc::Notice{"weft-node-agent", std::move(text)});
}

}  // namespace weft::agent
