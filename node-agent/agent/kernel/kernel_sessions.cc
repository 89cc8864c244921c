// SPDX-License-Identifier: Apache-2.0
// See kernel_sessions.h.
#include "node-agent/agent/kernel/kernel_sessions.h"

#include <string>
#include <utility>

#include "node-agent/agent/kernel/program_cgroup.h"

namespace weft::agent {

Status KernelSessions::Make(const Session& session) {
  for (const SessionChannel& channel : session.channels) {
    if (!channel.of_kernel()) continue;
    const Status made = MakeChannel(session, channel);
    if (made) continue;
    Forget(session);
    return made;
  }
  return {};
}

void KernelSessions::Forget(const Session& session) {
  for (const SessionChannel& channel : session.channels) Forget(channel);
}

Status KernelSessions::MakeChannel(const Session& session, const SessionChannel& channel) {
  if (channels_.Has(channel.definition.id)) return {};
  KernelChannels::Scope scope{
      .all = session.is_cluster_wide(), .cgroups = channel.scope, .trackers = channel.trackers};
  if (!session.cgroup.empty()) {
    WEFT_ASSIGN(const uint64_t id, CgroupId(session.cgroup));
    scope.cgroups.insert(id);
  }
  kernel::Ring ring{.mode = channel.spec.mode,
                    .clock = clock_(),
                    .subbuf_shift = channel.spec.subbuf_shift,
                    .subbufs_shift = channel.spec.subbufs_shift,
                    .channel_id = channel.definition.id};
  for (const control::ContextSpec& context : channel.spec.contexts)
    ring.contexts.push_back({context.id, context.name, context.perf_type, context.perf_config});
  return channels_.Start(ring, channel.kernel_events, scope);
}

bool KernelSessions::Prepare(Session& session, SessionChannel& channel) {
  const Status made = MakeChannel(session, channel);
  const std::string why = made ? "" : made.error().message;
  const bool is_news = std::exchange(channel.failure, why) != why;
  channel.lacks_ring = !made;
  if (!made && is_news) listener_.ChannelFailed(session, why);
  return !channel.lacks_ring;
}

// The cgroup of a program that is still to be started has no state to dump: the cli asks for the
// dump when it starts the program. Pods whose cgroups are still to come have none either: SetScope
// asks for it.
void KernelSessions::TurnOn(const Session& session, const SessionChannel& channel) {
  if (channel.paused) return;
  Switch(channel, true);
  if (session.cgroup.empty() && (session.is_cluster_wide() || !channel.scope.empty()))
    DumpStateOf(channel);
}

void KernelSessions::Switch(const SessionChannel& channel, bool on) {
  if (!channels_.Has(channel.definition.id)) return;
  if (const Status switched = channels_.Switch(channel.definition.id, on); !switched)
    listener_.Note(switched.error().message);
}

void KernelSessions::ApplyPaused(const Session& session) {
  for (const SessionChannel& channel : session.channels)
    if (channel.of_kernel() && channel.phase == ChannelPhase::kOn) Switch(channel, !channel.paused);
}

// The file is saved before a cgroup comes and after it went (invariant 1). If a cgroup comes later
// than the first ones, its state is dumped then.
Status KernelSessions::SetScope(SessionChannel& channel, const std::set<uint64_t>& cgroups) {
  const uint64_t id = channel.definition.id;
  const Session& session = *sessions_.FindChannel(id).session;
  const std::set<uint64_t> before = channel.scope;
  Status first;
  const auto note = [&first](const Status& status) {
    if (first && !status) first = status;
  };
  channel.scope.insert(cgroups.begin(), cgroups.end());
  if (channel.scope != before) WEFT_TRY(sessions_.Save(session));
  for (const uint64_t cgroup : cgroups) {
    if (before.contains(cgroup)) continue;
    const Status added = channels_.ChangeScope(id, cgroup, WEFT_KERNEL_SCOPE_ADD);
    if (!added) channel.scope.erase(cgroup);
    if (added && !before.empty()) DumpStateOf(channel, cgroup);
    note(added);
  }
  for (const uint64_t cgroup : before) {
    if (cgroups.contains(cgroup)) continue;
    const Status removed = channels_.ChangeScope(id, cgroup, WEFT_KERNEL_SCOPE_REMOVE);
    if (removed) channel.scope.erase(cgroup);
    note(removed);
  }
  if (channel.scope != before) note(sessions_.Save(session));
  if (before.empty() && !channel.scope.empty()) DumpStateOf(channel);
  return first;
}

Status KernelSessions::AddEvent(const SessionChannel& channel, const kernel::Event& event) {
  return channels_.AddEvent(channel.definition.id, event);
}

void KernelSessions::DumpState(const Session& session) {
  for (const SessionChannel& channel : session.channels) DumpStateOf(channel);
}

void KernelSessions::DumpStateOf(const SessionChannel& channel, uint64_t cgroup) {
  if (channel.phase == ChannelPhase::kOn && !channel.paused && channel.tells_state)
    channels_.DumpState(channel.definition.id, cgroup);
}

// A ring ends with the last of its descriptors, and with it the records in it that were not
// delivered.
void KernelSessions::Restored(const std::function<bool(const SessionChannel&)>& goes_on) {
  std::set<uint64_t> needed;
  sessions_.ForEachChannel([&](Session& session, SessionChannel& channel) {
    if (!channel.of_kernel() || channel.phase == ChannelPhase::kDrained) return;
    const uint64_t id = channel.definition.id;
    if (channels_.Has(id) || channel.phase == ChannelPhase::kDefined) {
      needed.insert(id);
      return;
    }
    if (goes_on(channel)) {
      channel.phase = ChannelPhase::kStopping;
    } else {
      channel.reported.lost["keeper/gone"] += channel.reported.in_flight;
      channel.reported.in_flight = 0;
      channel.reported.tail_unknown += 1;
      channel.phase = ChannelPhase::kDrained;
    }
    sessions_.SaveOrNote(session);
  });
  channels_.KeepOnly(needed);
}

void KernelSessions::ReportProblems() {
  for (std::string& problem : channels_.TakeProblems()) listener_.Note(std::move(problem));
}

void KernelSessions::ReportNews() {
  for (const KernelChannels::News& news : channels_.TakeNews()) {
    const auto [session, channel] = sessions_.FindChannel(news.channel);
    if (channel == nullptr) continue;
    ipc::ChannelCounts& own = channel->own;
    const bool misses_first = own.missed_anywhere == 0 && news.missed_anywhere != 0;
    own.missed_anywhere = news.missed_anywhere;
    if (!news.stopped.empty()) {
      channel->stopped = news.stopped;
      own.tail_unknown = 1;  // what it would have recorded from here on
      listener_.Note("Trace \"" + channel->definition.trace + "\": " + news.stopped);
    }
    if (misses_first || !news.stopped.empty()) listener_.SessionChanged(*session);
  }
}

}  // namespace weft::agent
