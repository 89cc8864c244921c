// SPDX-License-Identifier: Apache-2.0
// See channel_lifecycle.h.
#include "node-agent/agent/core/channel_lifecycle.h"

#include <set>
#include <vector>

#include "lib/base/kill_point.h"
#include "node-agent/agent/base/limits.h"

namespace weft::agent {

void ChannelLifecycle::Start(Session& session) {
  const int64_t now = MonotonicNow();
  std::set<std::string> containers;
  for (SessionChannel& channel : session.channels) {
    if (channel.phase != ChannelPhase::kDefined) continue;
    channel.phase = ChannelPhase::kOn;
    if (channel.duration) channel.stop_at_ns = now + channel.duration->count();
    containers.insert(channel.container);
    needs_.notifier.TellChannel(channel);
    if (channel.of_kernel()) BeginKernel(session, channel);
  }
  if (containers.empty()) return;
  KillPoint("begun");
  needs_.sessions.SaveOrNote(session);
  KillPoint("begun_saved");
  needs_.areas.PublishOrNote(containers);
  KillPoint("begun_published");
  for (const auto delay : kFirstLooks) needs_.loop.After(delay, [this] { Look(); });
}

void ChannelLifecycle::BeginKernel(Session& session, SessionChannel& channel) {
  if (!needs_.kernel.Prepare(session, channel)) return;
  needs_.notifier.TellKernelRing(channel);
  needs_.kernel.TurnOn(session, channel);
}

void ChannelLifecycle::RetryKernel() {
  needs_.sessions.ForEachChannel([this](Session& session, SessionChannel& channel) {
    if (!channel.lacks_ring || channel.phase != ChannelPhase::kOn) return;
    BeginKernel(session, channel);
    if (!channel.lacks_ring) needs_.listener.SessionChanged(session);
  });
}

void ChannelLifecycle::Stop(const Which& which) {
  std::set<std::string> containers;
  std::set<Session*> changed;
  needs_.sessions.ForEachChannel([&](Session& session, SessionChannel& channel) {
    if (!which(channel)) return;
    channel.phase = ChannelPhase::kStopping;
    if (channel.of_kernel()) needs_.kernel.TurnOff(channel);
    needs_.pending_stops.Add(channel.definition.id);
    containers.insert(channel.container);
    changed.insert(&session);
  });
  if (changed.empty()) return;
  for (const Session* session : changed) needs_.sessions.SaveOrNote(*session);
  KillPoint("stopping_saved");
  needs_.areas.PublishOrNote(containers);
  KillPoint("stopping_published");
  needs_.keeper(ipc::Sync{needs_.pending_stops.AskForSync(MonotonicNow())});
  KillPoint("sync_asked_for");
  needs_.kernel.ReportNews();  // once the channel is drained, weft.ko has no session to ask
}

void ChannelLifecycle::OnSynced(uint64_t number) {
  if (!needs_.rings.has_begun()) {
    synced_ = number;
    return;
  }
  const std::vector<uint64_t> answered = needs_.pending_stops.Answered(number);
  if (answered.empty()) return;
  needs_.rings.TakeAllNames();
  needs_.finder.LookAtAll();
  KillPoint("synced");
  for (const uint64_t id : answered) {
    needs_.pending_stops.Remove(id);
    const SessionChannel* channel = needs_.sessions.FindChannel(id).channel;
    if (channel != nullptr) needs_.notifier.TellStop(*channel);
  }
  const auto hopeless = [this](const SessionChannel& channel) {
    const ConsumerLink* link = needs_.consumers.Find(channel.consumer);
    return link != nullptr && link->given_up;
  };
  GiveUp(hopeless, "consumer", "failed");
  GiveUpRefused();
}

void ChannelLifecycle::Resume() {
  std::set<std::string> containers;
  needs_.sessions.ForEachChannel([&](Session&, SessionChannel& channel) {
    containers.insert(channel.container);
    if (channel.phase == ChannelPhase::kDrained)
      needs_.processes.DropChannel(channel.definition.id);
  });
  needs_.areas.PublishOrNote(containers);
  needs_.consumers.StartAll();
  Stop([](const SessionChannel& c) { return c.phase == ChannelPhase::kStopping; });
}

void ChannelLifecycle::Tick(int64_t now_ns) {
  (void)needs_.rings.TakeNames();
  Stop([&](const SessionChannel& c) {
    return c.phase == ChannelPhase::kOn && c.stop_at_ns != 0 && now_ns >= c.stop_at_ns;
  });
  // This drains only a part: the consumer is told once more when the Sync is answered.
  for (const uint64_t id : needs_.pending_stops.TakeLate(now_ns)) {
    const SessionChannel* channel = needs_.sessions.FindChannel(id).channel;
    if (channel != nullptr) needs_.notifier.TellStop(*channel);
  }
}

void ChannelLifecycle::Look() {
  bool any = false;
  needs_.sessions.ForEachChannel([&](Session&, SessionChannel& channel) {
    any = any || channel.phase != ChannelPhase::kDrained;
  });
  if (!needs_.rings.has_begun() || !any) return;
  needs_.finder.LookAtMembers();
  needs_.sessions.ForEachChannel([&](Session&, SessionChannel& channel) {
    if (channel.phase != ChannelPhase::kDrained) needs_.rings.CountMissing(channel, false);
  });
  needs_.areas.DropUnmapped();
}

void ChannelLifecycle::OnReady(const ConsumerLink& link, const ipc::ChannelReady& ready) {
  const auto [session, channel] = needs_.sessions.FindChannelOf(link.name(), ready.channel_id);
  if (channel == nullptr) return;
  KillPoint("channel_ready");
  channel->ready = ready.error.empty();
  channel->refused = !channel->ready && !ready.waits;
  if (!channel->ready) needs_.listener.ChannelFailed(*session, ready.error);
  needs_.listener.SessionChanged(*session);
  GiveUpRefused();
}

void ChannelLifecycle::OnStats(const ConsumerLink& link, ipc::Stats stats) {
  SessionChannel* channel = needs_.sessions.FindChannelOf(link.name(), stats.channel_id).channel;
  if (channel != nullptr && channel->phase != ChannelPhase::kDrained)
    channel->reported = std::move(stats.counts);
}

void ChannelLifecycle::OnDrained(ConsumerLink& link, ipc::Drained drained) {
  // Ring sets may still come, and the last StopChannel with them: a consumer that answers before it
  // is not believed.
  if (needs_.pending_stops.Waits(drained.channel_id)) return;
  const auto [session, channel] = needs_.sessions.FindChannelOf(link.name(), drained.channel_id);
  link.Tell([id = drained.channel_id] { return ipc::ForgetChannel{id}; });
  if (channel == nullptr) return;
  if (channel->phase == ChannelPhase::kStopping) {
    channel->reported = std::move(drained.counts);
    channel->phase = ChannelPhase::kDrained;
  }
  KillPoint("drained");
  needs_.rings.AccountAll(*channel);
  // First on disk: a ring set that the keeper has no more, of a channel that is not drained there,
  // is a new one to the next agent, and all that it ever took is late.
  needs_.sessions.SaveOrNote(*session);
  KillPoint("drained_saved");
  needs_.processes.DropChannel(channel->definition.id);
  needs_.kernel.Forget(*channel);
  KillPoint("drained_dropped");
  // A ring set that a process was making when its events were turned off counts as late.
  needs_.finder.LookAtAll();
  needs_.rings.CountMissing(*channel, true);
  needs_.rings.TakeAllNames();
  needs_.listener.SessionChanged(*session);
}

// Gives up channels whose output the consumer cannot make.
void ChannelLifecycle::GiveUpRefused() {
  GiveUp([](const SessionChannel& channel) { return channel.refused; }, "output", "failed");
}

void ChannelLifecycle::GiveUp(const Which& which, const std::string& stage,
                              const std::string& reason) {
  std::set<Session*> changed;
  const std::string loss = stage + "/" + reason;
  needs_.sessions.ForEachChannel([&](Session& session, SessionChannel& channel) {
    const uint64_t id = channel.definition.id;
    if (channel.phase != ChannelPhase::kStopping || needs_.pending_stops.Waits(id) ||
        !which(channel))
      return;
    channel.reported.lost[loss] += channel.reported.in_flight;
    channel.reported.in_flight = 0;
    channel.reported.tail_unknown += needs_.processes.RingsOf(id);
    channel.phase = ChannelPhase::kDrained;
    needs_.rings.AccountAll(channel);
    needs_.rings.CountMissing(channel, true);
    needs_.processes.DropChannel(id);
    needs_.kernel.Forget(channel);
    needs_.listener.Note("Trace \"" + channel.definition.trace + "\" ended without its " + stage +
                         ": what was in its buffers is lost");
    changed.insert(&session);
  });
  for (Session* session : changed) {
    needs_.sessions.SaveOrNote(*session);
    needs_.listener.SessionChanged(*session);
  }
}

}  // namespace weft::agent
