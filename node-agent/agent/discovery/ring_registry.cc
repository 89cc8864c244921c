// SPDX-License-Identifier: Apache-2.0
// See ring_registry.h.
#include "node-agent/agent/discovery/ring_registry.h"

#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <optional>

#include "lib/abi/control.h"
#include "lib/base/hexadecimal.h"
#include "lib/base/kill_point.h"
#include "lib/base/log_text.h"
#include "node-agent/agent/base/limits.h"
#include "node-agent/agent/discovery/late_ring.h"

namespace weft::agent {
namespace {

// Returns the doorbell's message; nothing where it is none. Its bytes are foreign.
std::optional<weft_doorbell> ReadDoorbell(const std::string& hexadecimal) {
  weft_doorbell bell{};
  const std::string bytes = FromHexadecimal(hexadecimal);
  if (bytes.size() < sizeof(bell)) return std::nullopt;
  std::memcpy(&bell, bytes.data(), sizeof(bell));
  if (bell.magic != WEFT_DOORBELL_MAGIC) return std::nullopt;
  if (bell.kind != WEFT_DOORBELL_RING) return std::nullopt;
  return bell;
}

}  // namespace

void RingRegistry::Begin() {
  has_begun_ = true;
  for (ipc::Arrived& arrived : early_) TakeArrived(std::move(arrived));
  early_.clear();
}

void RingRegistry::TakeArrived(ipc::Arrived arrived) {
  if (!has_begun_) return early_.push_back(std::move(arrived));
  KillPoint("arrived");
  const auto bell = ReadDoorbell(arrived.message);
  if (!bell) return DropKept(arrived);
  needs_.finder.AddMember(arrived.pid);
  const CallerId caller{.doorbell = &arrived.doorbell, .pid = arrived.pid, .pidfd = &arrived.pidfd};
  if (!arrived.fd) {  // the keeper had no descriptor free for it
    TakeName(*bell, caller);
    SaveNames();
    return DropKept(arrived);
  }
  needs_.finder.Know(arrived.fd);
  const auto identified = IdentifyRing(arrived.fd);
  SessionChannel* channel =
      identified ? needs_.sessions.FindChannel(identified->channel_id).channel : nullptr;
  if (channel == nullptr || !needs_.lookup.Belongs(channel->container, caller)) {
    needs_.note_of(arrived.doorbell, "process " + std::to_string(arrived.pid) +
                                         " sent what is no ring set of a session's" +
                                         (identified ? "" : ": " + identified.error().message));
    return DropKept(arrived);
  }
  // The keeper could not hold it. The finder may have been faster.
  if (arrived.key.empty()) {
    if (needs_.processes.FindRing(identified->channel_id, identified->instance) == nullptr)
      AccountLate(*channel, arrived.fd, identified->instance, "keeper/too_many_rings");
    return;
  }
  Take(*channel, arrived, identified->instance);
}

Finder::Verdict RingRegistry::TakeFound(FoundMemory found) {
  const auto identified = IdentifyRing(found.fd);
  if (!identified) return Finder::Verdict::kTryAgain;
  // If this agent does not have the channel, the ring set belongs to another agent. That is no
  // fault.
  SessionChannel* channel = needs_.sessions.FindChannel(identified->channel_id).channel;
  if (channel == nullptr || channel->accounted.contains(identified->instance))
    return Finder::Verdict::kKnown;
  if (!needs_.lookup.Belongs(channel->container, {.pid = found.pid, .pidfd = &found.pidfd}))
    return Finder::Verdict::kTryAgain;
  // It may wait in the doorbell's backlog for the same reason, or have no other way to the agent.
  if (TakesRings(*channel) && !needs_.processes.HasRoom()) {
    if (channel->missing.size() < kMaxNames &&
        channel->missing.insert_or_assign(identified->instance, SessionChannel::kUntilTheEnd)
            .second)
      changed_.insert(identified->channel_id);
    return Finder::Verdict::kLater;
  }
  ipc::Arrived arrived{.key = "",
                       .doorbell = "",
                       .message = "",
                       .pid = found.pid,
                       .uid = found.uid,
                       .gid = 0,
                       .fd = std::move(found.fd),
                       .pidfd = std::move(found.pidfd)};
  Take(*channel, arrived, identified->instance);
  return Finder::Verdict::kKnown;
}

bool RingRegistry::TakeNames() {
  const bool any =
      has_begun_ && needs_.doorbells.ReadNames(
                        [this](const std::string& doorbell, const weft_doorbell& name) {
                          TakeName(name, {.doorbell = &doorbell});
                        },
                        [this] { SaveNames(); });
  SaveNames();
  return any;
}

void RingRegistry::TakeAllNames() {
  for (int i = 0; i < kReadsOfAllNames && TakeNames(); ++i) {
  }
}

void RingRegistry::TakeName(const weft_doorbell& name, const CallerId& caller) {
  const uint64_t id = name.channel_id;
  SessionChannel* channel = needs_.sessions.FindChannel(id).channel;
  if (channel == nullptr || !needs_.lookup.Belongs(channel->container, caller)) return;
  if (channel->accounted.contains(name.instance) ||
      needs_.processes.FindRing(id, name.instance) != nullptr)
    return;
  changed_.insert(id);
  if (channel->accounted.size() + channel->missing.size() >= kMaxNames)
    return CountUnknown(*channel, 1);
  channel->missing.try_emplace(name.instance, kLooksForMissing);
  // No look finds it.
  if (channel->phase == ChannelPhase::kDrained || !needs_.finder.refusal().empty())
    CountMissing(*channel, true);
}

void RingRegistry::CountMissing(SessionChannel& channel, bool all) {
  uint64_t count = 0;
  for (auto it = channel.missing.begin(); it != channel.missing.end();) {
    uint32_t& looks = it->second;
    if (looks != SessionChannel::kUntilTheEnd) --looks;
    if (!all && looks > 0) {
      ++it;
      continue;
    }
    count += channel.accounted.insert(it->first).second ? 1 : 0;
    it = channel.missing.erase(it);
  }
  if (count != 0) CountUnknown(channel, count);
}

void RingRegistry::CountUnknown(SessionChannel& channel, uint64_t count) {
  if (channel.own.tail_unknown == 0)
    needs_.note(
        "Trace \"" + channel.definition.trace +
        "\": more processes began at once than could be taken in, or processes had no memory or "
        "no descriptor for a ring set (limits of their own); only their number is known");
  channel.own.tail_unknown += count;
  channel.own.rings += count;
  changed_.insert(channel.definition.id);
}

void RingRegistry::SaveNames() {
  std::set<const Session*> sessions;
  for (const uint64_t id : changed_)
    if (const Session* session = needs_.sessions.FindChannel(id).session) sessions.insert(session);
  for (const Session* session : sessions) needs_.sessions.SaveOrNote(*session);
  changed_.clear();
}

// After StopChannel the consumer takes no more ring sets of this channel.
bool RingRegistry::TakesRings(const SessionChannel& channel) const {
  return channel.phase == ChannelPhase::kOn || (channel.phase == ChannelPhase::kStopping &&
                                                needs_.pending_stops.Waits(channel.definition.id));
}

// A ring set that was found has no key: the keeper does not have it yet.
void RingRegistry::DropKept(const ipc::Arrived& arrived) {
  if (!arrived.key.empty()) needs_.keeper(ipc::Drop{arrived.key});
}

void RingRegistry::Take(SessionChannel& channel, ipc::Arrived& arrived, uint64_t instance) {
  const uint64_t id = channel.definition.id;
  // This memory is known already.
  if (needs_.processes.FindRing(id, instance) != nullptr || channel.accounted.contains(instance))
    return DropKept(arrived);
  const bool ended = !TakesRings(channel);
  RingEntry* ring = ended ? nullptr : needs_.processes.Adopt(arrived, id, instance);
  if (ring == nullptr) {
    const bool is_late = ended && !channel.missing.contains(instance);
    AccountLate(channel, arrived.fd, instance,
                is_late ? "agent/late_ring" : "agent/too_many_rings");
    return DropKept(arrived);
  }
  channel.missing.erase(instance);
  needs_.adopted(*ring);
  KillPoint("ring_queued");
  needs_.processes.Watch(ring->process);
}

void RingRegistry::AccountLate(SessionChannel& channel, const UniqueFd& ring, uint64_t instance,
                               const char* reason) {
  if (!channel.accounted.insert(instance).second) return;
  channel.missing.erase(instance);
  channel.own.rings += 1;
  if (const auto totals = CloseAndCount(UniqueFd(dup(ring.get())), lock_waits_)) {
    if (!totals->is_final) channel.own.tail_unknown += 1;
    channel.own.recorded += totals->recorded;
    if (totals->recorded != 0) channel.own.lost[reason] += totals->recorded;
    for (uint32_t i = 0; i < WEFT_DISCARD_REASONS; ++i)
      if (totals->discarded[i] != 0)
        channel.own.discarded[weft_discard_name(i)] += totals->discarded[i];
  } else {
    channel.own.tail_unknown += 1;
  }
  needs_.sessions.SaveOrNote(*needs_.sessions.FindChannel(channel.definition.id).session);
}

bool RingRegistry::Finish(SessionChannel* channel, const ipc::RingDone& done) {
  const RingEntry* ring = needs_.processes.FindRing(done.channel_id, done.instance);
  if (channel == nullptr && ring != nullptr) return false;
  if (done.refused && channel != nullptr && ring != nullptr)
    AccountLate(*channel, ring->fd, done.instance, "consumer/too_many_rings");
  const ProcessEntry* process = ring != nullptr ? needs_.processes.Find(ring->process) : nullptr;
  if (done.corrupt && process != nullptr)
    needs_.note_of(channel != nullptr ? channel->definition.pod_uid : "",
                   "the ring set of process " + std::to_string(process->pid) + " (" +
                       ForLog(process->procname) + ") is corrupt: " + done.reason);
  if (done.corrupt && channel != nullptr && channel->of_kernel())
    needs_.note("the kernel's ring set of Trace \"" + channel->definition.trace +
                "\" is corrupt: " + done.reason +
                "; its events from there on are lost: report this as a bug of the back end");
  // It can come a second time: its process still maps it, or its announcement waits in a backlog.
  const bool was_found = ring != nullptr && ring->key.starts_with(kFoundKey);
  const bool is_mapped = done.corrupt || (process != nullptr && !process->gone);
  if (channel != nullptr && (was_found || is_mapped)) {
    channel->accounted.insert(done.instance);
    changed_.insert(done.channel_id);
  }
  KillPoint("ring_done");
  needs_.processes.Drop(done.channel_id, done.instance);
  KillPoint("ring_dropped");
  return true;
}

void RingRegistry::MoveToHugePages(const ipc::SlotWentRound& slot) {
  const RingEntry* ring = needs_.processes.FindRing(slot.channel_id, slot.instance);
  const ProcessEntry* process = ring != nullptr ? needs_.processes.Find(ring->process) : nullptr;
  if (process != nullptr && !process->gone && process->pidfd)
    huge_pages_.Move(ring->fd, slot.slot, process->pid, process->pidfd);
}

void RingRegistry::AccountAll(SessionChannel& channel) {
  needs_.processes.ForEachRing([&](const RingEntry& ring) {
    if (ring.channel_id == channel.definition.id) channel.accounted.insert(ring.instance);
  });
}

}  // namespace weft::agent
