// SPDX-License-Identifier: Apache-2.0
// See ring_registry.h.
#include "node-agent/agent/discovery/ring_registry.h"

#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <optional>

#include "lib/abi/control.h"
#include "lib/base/copy_fd.h"
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
    to_drop_.push_back(std::move(arrived.key));
    return;
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
      CountUnkept(*channel, arrived.fd, *identified);
    return;
  }
  (void)Take(*channel, arrived, *identified);
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
    RememberUntilTheEnd(*channel, identified->instance);
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
  if (Take(*channel, arrived, *identified)) return Finder::Verdict::kKnown;
  RememberUntilTheEnd(*channel, identified->instance);
  return Finder::Verdict::kLater;
}

void RingRegistry::Spend(const std::function<void()>& work) {
  const auto begin = ipc::Loop::Clock::now();
  work();
  const auto end = ipc::Loop::Clock::now();
  const auto rest =
      std::min<ipc::Loop::Clock::duration>(kRegistryRest * (end - begin), kLongestRegistryRest);
  rests_until_ = std::max(rests_until_, end + rest);
}

void RingRegistry::Tick() {
  if (ipc::Loop::Clock::now() < rests_until_) return;
  Spend([this] {
    (void)TakeNames();
    late_.CountSome();
  });
}

bool RingRegistry::TakeNames() {
  const bool any =
      has_begun_ && needs_.doorbells.ReadNames(
                        [this](const std::string& doorbell, const weft_doorbell& name) {
                          TakeName(name, {.doorbell = &doorbell});
                        },
                        [this] { Save(); });
  Save();
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
  if (channel->accounted.contains(name.instance) || late_.Has(id, name.instance) ||
      needs_.processes.FindRing(id, name.instance) != nullptr)
    return;
  Remember(*channel, name.instance);
}

void RingRegistry::Remember(SessionChannel& channel, uint64_t instance) {
  changed_.insert(channel.definition.id);
  if (!channel.HasRoomForNames()) return CountUnknown(channel, 1);
  channel.missing.try_emplace(instance, kLooksForMissing);
  // No look finds it.
  if (channel.phase == ChannelPhase::kDrained || !needs_.finder.refusal().empty())
    CountMissing(channel, true);
}

void RingRegistry::RememberUntilTheEnd(SessionChannel& channel, uint64_t instance) {
  if (channel.missing.size() < kMaxNames &&
      channel.missing.insert_or_assign(instance, SessionChannel::kUntilTheEnd).second)
    changed_.insert(channel.definition.id);
}

void RingRegistry::CountMissing(SessionChannel& channel, bool all) {
  uint64_t count = 0;
  for (auto it = channel.missing.begin(); it != channel.missing.end();) {
    uint32_t& looks = it->second;
    if (looks != SessionChannel::kUntilTheEnd) --looks;
    if ((!all && looks > 0) || late_.Has(channel.definition.id, it->first)) {
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

void RingRegistry::Save() {
  std::set<const Session*> sessions;
  for (const uint64_t id : changed_)
    if (const Session* session = needs_.sessions.FindChannel(id).session) sessions.insert(session);
  for (const Session* session : sessions) needs_.sessions.SaveOrNote(*session);
  changed_.clear();
  for (std::string& key : to_drop_) needs_.keeper(ipc::Drop{std::move(key)});
  to_drop_.clear();
}

// The keeper passes on many of them at once, and none comes a second time.
void RingRegistry::CountUnkept(SessionChannel& channel, const UniqueFd& ring,
                               const RingTotals& identified) {
  if (!late_.HasRoom(channel.consumer)) late_.CountSomeNow();
  if (!AccountLate(channel, ring,
                   {.channel_id = identified.channel_id,
                    .instance = identified.instance,
                    .slot_count = identified.slot_count,
                    .reason = "keeper/too_many_rings"}))
    Remember(channel, identified.instance);
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

bool RingRegistry::Take(SessionChannel& channel, ipc::Arrived& arrived,
                        const RingTotals& identified) {
  const uint64_t id = channel.definition.id;
  const uint64_t instance = identified.instance;
  // This memory is known already.
  if (needs_.processes.FindRing(id, instance) != nullptr || channel.accounted.contains(instance) ||
      late_.Has(id, instance)) {
    DropKept(arrived);
    return true;
  }
  const bool ended = !TakesRings(channel);
  RingEntry* ring = ended ? nullptr : needs_.processes.Adopt(arrived, id, instance);
  if (ring == nullptr) {
    const bool is_late = ended && !channel.missing.contains(instance);
    return AccountLate(channel, arrived.fd,
                       {.channel_id = id,
                        .instance = instance,
                        .slot_count = identified.slot_count,
                        .key = std::move(arrived.key),
                        .reason = is_late ? "agent/late_ring" : "agent/too_many_rings"});
  }
  channel.missing.erase(instance);
  needs_.adopted(*ring);
  KillPoint("ring_queued");
  needs_.processes.Watch(ring->process);
  return true;
}

bool RingRegistry::AccountLate(SessionChannel& channel, const UniqueFd& ring,
                               LateRings::Late late) {
  if (channel.accounted.contains(late.instance) || late_.Has(late.channel_id, late.instance)) {
    if (!late.key.empty()) to_drop_.push_back(std::move(late.key));
    return true;
  }
  if (late.key.empty()) {
    if (!late_.HasRoom(channel.consumer)) return false;
    RememberUntilTheEnd(channel, late.instance);
  }
  ++channel.counting;
  late_.Add(channel.consumer, std::move(late), CopyFd(ring));
  return true;
}

void RingRegistry::TakeCounts(std::vector<LateRings::Counted> counted) {
  std::set<Session*> over;
  Spend([&] {
    for (LateRings::Counted& one : counted) {
      const auto [session, channel] = needs_.sessions.FindChannel(one.late.channel_id);
      if (channel != nullptr) AddCount(one, *channel);
      if (channel != nullptr && channel->is_over()) over.insert(session);
      if (!one.late.key.empty()) to_drop_.push_back(std::move(one.late.key));
    }
    Save();
  });
  for (Session* session : over) needs_.counted(*session);
}

void RingRegistry::AddCount(const LateRings::Counted& counted, SessionChannel& channel) {
  --channel.counting;
  channel.missing.erase(counted.late.instance);
  // One that is not remembered is counted again if it comes again.
  if (channel.HasRoomForNames()) channel.accounted.insert(counted.late.instance);
  channel.own.rings += 1;
  changed_.insert(channel.definition.id);
  const auto& totals = counted.totals;
  if (!totals) {
    channel.own.tail_unknown += 1;
    return;
  }
  channel.own.recorded += totals->recorded;
  if (totals->recorded != 0) channel.own.lost[counted.late.reason] += totals->recorded;
  for (uint32_t i = 0; i < WEFT_DISCARD_REASONS; ++i)
    if (totals->discarded[i] != 0)
      channel.own.discarded[weft_discard_name(i)] += totals->discarded[i];
}

bool RingRegistry::Finish(SessionChannel* channel, const ipc::RingDone& done) {
  const RingEntry* ring = needs_.processes.FindRing(done.channel_id, done.instance);
  if (channel == nullptr && ring != nullptr) return false;
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
  if (channel != nullptr && ring != nullptr && done.refused) {
    CountRefused(*channel, *ring);
    return true;
  }
  if (channel != nullptr && (was_found || is_mapped) && channel->HasRoomForNames()) {
    channel->accounted.insert(done.instance);
    changed_.insert(done.channel_id);
  }
  KillPoint("ring_done");
  needs_.processes.Drop(done.channel_id, done.instance);
  KillPoint("ring_dropped");
  return true;
}

// The keeper keeps it until it is counted. If the channel is drained before, the next agent knows
// it by its name alone.
void RingRegistry::CountRefused(SessionChannel& channel, const RingEntry& refused) {
  const UniqueFd ring = CopyFd(refused.fd);
  LateRings::Late late{.channel_id = refused.channel_id,
                       .instance = refused.instance,
                       .reason = "consumer/too_many_rings"};
  if (const auto identified = IdentifyRing(ring)) late.slot_count = identified->slot_count;
  RememberUntilTheEnd(channel, late.instance);
  late.key = needs_.processes.Detach(late.channel_id, late.instance);
  (void)AccountLate(channel, ring, std::move(late));
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
