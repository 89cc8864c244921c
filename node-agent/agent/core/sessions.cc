// SPDX-License-Identifier: Apache-2.0
// The agent's sessions: kept on disk, their channels turned on and off in their containers.
#include <unistd.h>

#include <algorithm>
#include <ranges>

#include "lib/base/kill_point.h"
#include "node-agent/agent/base/limits.h"
#include "node-agent/agent/core/agent.h"
#include "node-agent/agent/kernel/program_cgroup.h"

namespace weft::agent {

std::string Agent::PathOf(const std::string& name) const { return dir_ + "/" + name + ".json"; }

Session* Agent::FindSession(const std::string& name) {
  const auto found = sessions_.find(name);
  return found == sessions_.end() ? nullptr : found->second.get();
}

Status Agent::LoadSession(const std::string& name) {
  WEFT_ASSIGN(Session session, Session::Load(PathOf(name)));
  sessions_[name] = std::make_unique<Session>(std::move(session));
  return {};
}

Status Agent::AddSession(const std::string& name, Session session) {
  WEFT_TRY(session.Save(PathOf(name)));
  sessions_[name] = std::make_unique<Session>(std::move(session));
  return {};
}

void Agent::RemoveSession(const std::string& name) {
  unlink(PathOf(name).c_str());
  sessions_.erase(name);
}

// The consumer begins anew: what it wrote is in files that it knows nothing of, and others follow.
void Agent::RenewWithoutJournal() {
  ForEachChannel([this](Session& session, SessionChannel& channel) {
    if (channel.phase == ChannelPhase::kDrained || FindConsumer(channel.consumer) != nullptr)
      return;
    channel.reported.recorded -= channel.reported.in_flight;
    channel.reported.in_flight = 0;
    Add(channel.own, channel.reported);
    channel.reported = {};
    channel.definition.trace_uuid = RandomUuid();
    SaveOrNote(session);
  });
}

Status Agent::Save(const Session& session) {
  const auto is = [&](const auto& entry) { return entry.second.get() == &session; };
  const auto found = std::ranges::find_if(sessions_, is);
  return found == sessions_.end() ? Status{} : session.Save(PathOf(found->first));
}

void Agent::SaveOrNote(const Session& session) {
  if (const Status saved = Save(session); !saved) orders_->Note(saved.error().message);
}

Agent::Found Agent::Find(uint64_t channel_id) {
  for (auto& [name, session] : sessions_)
    if (SessionChannel* channel = session->Find(channel_id)) return {session.get(), channel};
  return {};
}

Agent::Found Agent::Find(const ConsumerLink& link, uint64_t channel_id) {
  const Found found = Find(channel_id);
  return found.channel != nullptr && found.channel->consumer == link.name() ? found : Found{};
}

void Agent::ForEachChannel(const std::function<void(Session&, SessionChannel&)>& visit) {
  for (auto& [name, session] : sessions_)
    for (SessionChannel& channel : session->channels) visit(*session, channel);
}

// --- containers ----------------------------------------------------------------------------------

Status Agent::OpenContainer(const std::string& key, const std::string& path) {
  WEFT_ASSIGN(const UniqueFd* file, containers_.Open(key, path));
  finder_.AddControlFile(key, *file);
  return {};
}

void Agent::CloseContainer(const std::string& key) {
  finder_.RemoveControlFile(key);
  for (const uint64_t inode : containers_.Close(key)) DropControl(inode);
}

std::vector<control::ChannelSpec> Agent::InForce(const std::string& container) const {
  std::vector<control::ChannelSpec> specs;
  for (const auto& [name, session] : sessions_)
    std::ranges::move(session->Published(container), std::back_inserter(specs));
  // The consumer is of this agent's version: it takes them.
  for (control::ChannelSpec& spec : specs) spec.flags |= WEFT_CHANNEL_LARGE_RECORDS;
  return specs;
}

// A process that cannot be told is none of this container's any more; the control file is another
// matter.
Status Agent::Publish(const std::string& container) {
  std::vector<Containers::Failure> failed;
  const Status published = containers_.Publish(container, InForce(container), failed);
  for (const auto& failure : failed) {
    orders_->Note(failure.why);
    DropControl(failure.inode);
  }
  return published;
}

void Agent::PublishOrNote(const std::set<std::string>& containers) {
  for (const std::string& container : containers)
    if (const Status published = Publish(container); !published)
      orders_->Note(published.error().message);
}

// --- channels ------------------------------------------------------------------------------------

void Agent::StartChannels(Session& session) {
  const int64_t now = MonotonicNow();
  std::set<std::string> containers;
  for (SessionChannel& channel : session.channels) {
    if (channel.phase != ChannelPhase::kDefined) continue;
    channel.phase = ChannelPhase::kOn;
    if (channel.duration) channel.stop_at_ns = now + channel.duration->count();
    containers.insert(channel.container);
    ToConsumer(channel.consumer, [definition = channel.definition] { return definition; });
    if (channel.of_kernel()) StartInKernel(session, channel);
  }
  if (containers.empty()) return;
  KillPoint("begun");
  SaveOrNote(session);
  KillPoint("begun_saved");
  PublishOrNote(containers);
  KillPoint("begun_published");
  for (const auto delay : kFirstLooks) loop_.After(delay, [this] { Look(); });
}

// Off in the control areas first; then the keeper's Sync, so that every ring set that was announced
// before is adopted, and a look for those that could not be; then the consumer.
void Agent::StopChannels(const Which& which) {
  std::set<std::string> containers;
  std::set<Session*> changed;
  ForEachChannel([&](Session& session, SessionChannel& channel) {
    if (!which(channel)) return;
    channel.phase = ChannelPhase::kStopping;
    if (channel.of_kernel()) SwitchInKernel(channel, false);
    stop_after_sync_[channel.definition.id] = next_sync_;
    containers.insert(channel.container);
    changed.insert(&session);
  });
  if (changed.empty()) return;
  for (const Session* session : changed) SaveOrNote(*session);
  KillPoint("stopping_saved");
  PublishOrNote(containers);
  KillPoint("stopping_published");
  sync_asked_ns_ = MonotonicNow();
  ToKeeper(ipc::Sync{next_sync_++});
  KillPoint("sync_asked_for");
  ReportKernel();  // drained, nobody could ask the module any more
}

void Agent::OnSynced(uint64_t number) {
  if (!takes_arrivals_) {
    synced_ = number;
    return;
  }
  std::vector<uint64_t> known;
  for (const auto& [channel, sync] : stop_after_sync_)
    if (sync <= number) known.push_back(channel);
  if (known.empty()) return;
  finder_.LookAtAll();
  KillPoint("synced");
  for (const uint64_t id : known) {
    stop_after_sync_.erase(id);
    stopped_early_.erase(id);
    const Found found = Find(id);
    if (found.channel != nullptr) StopInConsumer(*found.channel);
  }
  const auto hopeless = [this](const SessionChannel& channel) {
    const ConsumerLink* link = FindConsumer(channel.consumer);
    return link != nullptr && link->given_up;
  };
  GiveUp(hopeless, "consumer", "failed");
  GiveUpRefused();
}

// What the consumer then drains is not all: it is told once more when the Sync is answered.
void Agent::StopBeforeSync() {
  for (const auto& [id, sync] : stop_after_sync_) {
    const Found found = Find(id);
    if (found.channel == nullptr || !stopped_early_.insert(id).second) continue;
    StopInConsumer(*found.channel);
  }
}

void Agent::GiveUpRefused() {
  GiveUp([](const SessionChannel& channel) { return channel.refused; }, "output", "failed");
}

void Agent::StopInConsumer(SessionChannel& channel) {
  const uint64_t id = channel.definition.id;
  if (channel.snapshot && channel.of_kernel()) TellKernelRing(channel);
  if (channel.snapshot)
    processes_.ForEachRing([&](const RingEntry& ring) {
      if (ring.channel_id == id) TellRing(ring);
    });
  ToConsumer(channel.consumer, [id] { return ipc::StopChannel{id}; });
}

Status Agent::MakeInKernel(const Session& session) {
  for (const SessionChannel& channel : session.channels) {
    if (!channel.of_kernel()) continue;
    const Status made = MakeInKernel(session, channel);
    if (made) continue;
    ForgetInKernel(session);
    return made;
  }
  return {};
}

void Agent::ForgetInKernel(const Session& session) {
  for (const SessionChannel& channel : session.channels) kernel_.Forget(channel.definition.id);
}

Status Agent::MakeInKernel(const Session& session, const SessionChannel& channel) {
  if (kernel_.Has(channel.definition.id)) return {};
  KernelChannels::Whom whom{
      .all = session.is_cluster_wide(), .cgroups = channel.scope, .trackers = channel.trackers};
  if (!session.cgroup.empty()) {
    WEFT_ASSIGN(const uint64_t id, CgroupId(session.cgroup));
    whom.cgroups.insert(id);
  }
  kernel::Ring ring{.mode = channel.spec.mode,
                    .clock = containers_.config().clock,
                    .subbuf_shift = channel.spec.subbuf_shift,
                    .subbufs_shift = channel.spec.subbufs_shift,
                    .channel_id = channel.definition.id};
  for (const control::ContextSpec& context : channel.spec.contexts)
    ring.contexts.push_back({context.id, context.name, context.perf_type, context.perf_config});
  return kernel_.Start(ring, channel.kernel_events, whom);
}

void Agent::StartInKernel(Session& session, SessionChannel& channel) {
  if (const Status made = MakeInKernel(session, channel); !made) {
    channel.failure = made.error().message;
    return orders_->ChannelFailed(session, channel.failure);
  }
  TellKernelRing(channel);
  if (channel.paused) return;
  SwitchInKernel(channel, true);
  // The cgroup of a program that is still to be started has nothing to tell: who starts it asks
  // then. Nor have pods whose cgroups are still to come: SetKernelScope asks.
  if (session.cgroup.empty() && (session.is_cluster_wide() || !channel.scope.empty()))
    DumpStateOf(channel);
}

void Agent::DumpState(const Session& session) {
  for (const SessionChannel& channel : session.channels) DumpStateOf(channel);
}

void Agent::DumpStateOf(const SessionChannel& channel, uint64_t cgroup) {
  if (channel.phase == ChannelPhase::kOn && !channel.paused && channel.tells_state)
    kernel_.DumpState(channel.definition.id, cgroup);
}

// Saved before a cgroup comes and after it went: what weft.ko has is never more than the file says.
// What is in one already when it comes is told.
Status Agent::SetKernelScope(SessionChannel& channel, const std::set<uint64_t>& cgroups) {
  const Session& session = *Find(channel.definition.id).session;
  const std::set<uint64_t> before = channel.scope;
  Status first;
  const auto note = [&first](const Status& status) {
    if (first && !status) first = status;
  };
  channel.scope.insert(cgroups.begin(), cgroups.end());
  if (channel.scope != before) WEFT_TRY(Save(session));
  for (const uint64_t id : cgroups) {
    if (before.contains(id)) continue;
    const Status added = kernel_.ChangeScope(channel.definition.id, id, WEFT_KERNEL_SCOPE_ADD);
    if (!added) channel.scope.erase(id);
    if (added && !before.empty()) DumpStateOf(channel, id);
    note(added);
  }
  for (const uint64_t id : before) {
    if (cgroups.contains(id)) continue;
    const Status removed = kernel_.ChangeScope(channel.definition.id, id, WEFT_KERNEL_SCOPE_REMOVE);
    if (removed) channel.scope.erase(id);
    note(removed);
  }
  if (channel.scope != before) note(Save(session));
  if (before.empty() && !channel.scope.empty()) DumpStateOf(channel);
  return first;
}

Status Agent::AddKernelEvent(const SessionChannel& channel, const kernel::Event& event) {
  return kernel_.AddEvent(channel.definition.id, event);
}

void Agent::ApplyPaused(Session& session) {
  for (SessionChannel& channel : session.channels)
    if (channel.of_kernel() && channel.phase == ChannelPhase::kOn)
      SwitchInKernel(channel, !channel.paused);
}

// A ring goes with the last of its descriptors: what was in it and not yet delivered, nobody will
// say.
void Agent::RestoredKernelChannels() {
  std::set<uint64_t> needed;
  ForEachChannel([&](Session& session, SessionChannel& channel) {
    if (!channel.of_kernel() || channel.phase == ChannelPhase::kDrained) return;
    const uint64_t id = channel.definition.id;
    if (kernel_.Has(id) || channel.phase == ChannelPhase::kDefined) {
      needed.insert(id);
      return;
    }
    channel.reported.lost["keeper/gone"] += channel.reported.in_flight;
    channel.reported.in_flight = 0;
    channel.reported.tail_unknown += 1;
    channel.phase = ChannelPhase::kDrained;
    SaveOrNote(session);
  });
  kernel_.KeepOnly(needed);
}

void Agent::SwitchInKernel(SessionChannel& channel, bool on) {
  if (!kernel_.Has(channel.definition.id)) return;
  if (const Status switched = kernel_.Switch(channel.definition.id, on); !switched)
    orders_->Note(switched.error().message);
}

void Agent::GiveUp(const Which& which, const std::string& stage, const std::string& reason) {
  std::set<Session*> changed;
  const std::string loss = stage + "/" + reason;
  ForEachChannel([&](Session& session, SessionChannel& channel) {
    if (channel.phase != ChannelPhase::kStopping ||
        stop_after_sync_.contains(channel.definition.id) || !which(channel))
      return;
    channel.reported.lost[loss] += channel.reported.in_flight;
    channel.reported.in_flight = 0;
    channel.reported.tail_unknown += processes_.RingsOf(channel.definition.id);
    channel.phase = ChannelPhase::kDrained;
    AccountRings(channel);
    processes_.DropChannel(channel.definition.id);
    kernel_.Forget(channel.definition.id);
    orders_->Note("Trace \"" + channel.definition.trace + "\" ended without its " + stage +
                  ": what was in its buffers is lost");
    changed.insert(&session);
  });
  for (Session* session : changed) {
    SaveOrNote(*session);
    orders_->Changed(*session);
  }
}

}  // namespace weft::agent
