// SPDX-License-Identifier: Apache-2.0
// See ring_registry.h.
#include "node-agent/agent/discovery/ring_registry.h"

#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <optional>

#include "lib/abi/control.h"
#include "lib/base/kill_point.h"
#include "node-agent/agent/discovery/late_ring.h"

namespace weft::agent {
namespace {

// A larger number cannot be a count of processes.
constexpr uint64_t kMostUnannounced = 1 << 20;

// Returns how many ring sets the doorbell's message says were not announced; nothing where it is no
// such message. Its bytes are foreign.
std::optional<uint64_t> ReadDoorbell(const std::string& hexadecimal) {
  weft_doorbell bell{};
  std::string bytes;
  for (size_t i = 0; i + 1 < hexadecimal.size(); i += 2)
    bytes.push_back(static_cast<char>(std::strtoul(hexadecimal.substr(i, 2).c_str(), nullptr, 16)));
  if (bytes.size() < sizeof(bell)) return std::nullopt;
  std::memcpy(&bell, bytes.data(), sizeof(bell));
  if (bell.magic != WEFT_DOORBELL_MAGIC || bell.kind != WEFT_DOORBELL_RING) return std::nullopt;
  return std::min(bell.unannounced, kMostUnannounced);
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
  const auto drop = [&] {
    if (!arrived.key.empty()) needs_.keeper(ipc::Drop{arrived.key});
  };
  const auto unannounced = ReadDoorbell(arrived.message);
  if (!unannounced) return drop();
  needs_.finder.Know(arrived.fd);
  needs_.finder.AddMember(arrived.pid);
  const auto identified = IdentifyRing(arrived.fd);
  SessionChannel* channel =
      identified ? needs_.sessions.FindChannel(identified->channel_id).channel : nullptr;
  const CallerId caller{.doorbell = &arrived.doorbell, .pid = arrived.pid, .pidfd = &arrived.pidfd};
  if (channel == nullptr || !needs_.lookup.Belongs(channel->container, caller)) {
    needs_.note("process " + std::to_string(arrived.pid) +
                " sent what is no ring set of a session's" +
                (identified ? "" : ": " + identified.error().message));
    return drop();
  }
  if (*unannounced != 0 && !channel->accounted.contains(identified->instance))
    CountUnannounced(*channel, *unannounced);
  // The keeper could not hold it.
  if (arrived.key.empty())
    return AccountLate(*channel, arrived.fd, identified->instance, "keeper/too_many_rings");
  Take(*channel, arrived, identified->instance);
}

Finder::Verdict RingRegistry::TakeFound(FoundMemory found) {
  const auto identified = IdentifyRing(found.fd);
  if (!identified) return Finder::Verdict::kTryAgain;
  // Without a channel here it is another agent's, which is no fault.
  SessionChannel* channel = needs_.sessions.FindChannel(identified->channel_id).channel;
  if (channel == nullptr || channel->accounted.contains(identified->instance))
    return Finder::Verdict::kKnown;
  if (!needs_.lookup.Belongs(channel->container, {.pid = found.pid, .pidfd = &found.pidfd}))
    return Finder::Verdict::kTryAgain;
  // It may wait in the doorbell's backlog for the same reason. What is not taken before its channel
  // ends counts as late.
  if (TakesRings(*channel) && !needs_.processes.HasRoom()) return Finder::Verdict::kLater;
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

// The ring sets' contents are not known, nor whether some of them were found all the same.
void RingRegistry::CountUnannounced(SessionChannel& channel, uint64_t count) {
  if (channel.own.tail_unknown == 0)
    needs_.note("Trace \"" + channel.definition.trace +
                "\": more processes began at once than could be taken in; of the others only their "
                "number is known");
  channel.own.tail_unknown += count;
  needs_.sessions.SaveOrNote(*needs_.sessions.FindChannel(channel.definition.id).session);
}

// After StopChannel the consumer takes no ring set of this channel any more.
bool RingRegistry::TakesRings(const SessionChannel& channel) const {
  return channel.phase == ChannelPhase::kOn || (channel.phase == ChannelPhase::kStopping &&
                                                needs_.pending_stops.Waits(channel.definition.id));
}

// A ring set that was found has no key: the keeper does not have it yet.
void RingRegistry::Take(SessionChannel& channel, ipc::Arrived& arrived, uint64_t instance) {
  const uint64_t id = channel.definition.id;
  // This memory is known already.
  if (needs_.processes.FindRing(id, instance) != nullptr || channel.accounted.contains(instance)) {
    if (!arrived.key.empty()) needs_.keeper(ipc::Drop{arrived.key});
    return;
  }
  const bool ended = !TakesRings(channel);
  RingEntry* ring = ended ? nullptr : needs_.processes.Adopt(arrived, id, instance);
  if (ring == nullptr) {
    AccountLate(channel, arrived.fd, instance, ended ? "agent/late_ring" : "agent/too_many_rings");
    if (!arrived.key.empty()) needs_.keeper(ipc::Drop{arrived.key});
    return;
  }
  needs_.adopted(*ring);
  KillPoint("ring_queued");
  needs_.processes.Watch(ring->process);
}

void RingRegistry::AccountLate(SessionChannel& channel, const UniqueFd& ring, uint64_t instance,
                               const char* reason) {
  if (!channel.accounted.insert(instance).second) return;
  channel.own.rings += 1;
  if (const auto totals = CloseAndCount(UniqueFd(dup(ring.get())))) {
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
  if (done.corrupt) {
    const ProcessEntry* process = ring != nullptr ? needs_.processes.Find(ring->process) : nullptr;
    // Its process still maps it.
    if (channel != nullptr) channel->accounted.insert(done.instance);
    if (process != nullptr)
      needs_.note("the ring set of process " + std::to_string(process->pid) + " (" +
                  process->procname + ") is corrupt: " + done.reason);
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
