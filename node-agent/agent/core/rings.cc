// SPDX-License-Identifier: Apache-2.0
// Ring sets that the doorbell or the finder brought: identified, adopted, or counted as lost.
#include <algorithm>
#include <cstring>
#include <optional>

#include "lib/abi/control.h"
#include "lib/base/kill_point.h"
#include "node-agent/agent/core/agent.h"
#include "node-agent/agent/discovery/late_ring.h"

namespace weft::agent {
namespace {

// More than this is no count of processes.
constexpr uint64_t kMostUnannounced = 1 << 20;

// The message is foreign: its magic and kind are looked at, and how many ring sets it says were not
// announced.
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

void Agent::OnArrived(ipc::Arrived arrived) {
  KillPoint("arrived");
  const auto drop = [&] {
    if (!arrived.key.empty()) ToKeeper(ipc::Drop{arrived.key});
  };
  const auto unannounced = ReadDoorbell(arrived.message);
  if (!unannounced) return drop();
  finder_.Know(arrived.fd);
  finder_.AddMember(arrived.pid);
  const auto identified = IdentifyRing(arrived.fd);
  SessionChannel* channel = identified ? Find(identified->channel_id).channel : nullptr;
  const CallerId caller{.doorbell = &arrived.doorbell, .pid = arrived.pid, .pidfd = &arrived.pidfd};
  if (channel == nullptr || !orders_->Belongs(channel->container, caller)) {
    orders_->Note("process " + std::to_string(arrived.pid) +
                  " sent what is no ring set of a session's" +
                  (identified ? "" : ": " + identified.error().message));
    return drop();
  }
  if (*unannounced != 0 && !channel->accounted.contains(identified->instance))
    CountUnannounced(*channel, *unannounced);
  // The keeper could not hold it.
  if (arrived.key.empty())
    return AccountLate(*channel, arrived.fd, identified->instance, "keeper/too_many_rings");
  TakeRing(*channel, arrived, identified->instance);
}

// Their contents are not known, nor whether some of them were found all the same.
void Agent::CountUnannounced(SessionChannel& channel, uint64_t count) {
  if (channel.own.tail_unknown == 0)
    orders_->Note(
        "Trace \"" + channel.definition.trace +
        "\": more processes began at once than could be taken in; of the others only their "
        "number is known");
  channel.own.tail_unknown += count;
  SaveOrNote(*Find(channel.definition.id).session);
}

// After StopChannel the consumer takes no ring set of this channel any more.
bool Agent::TakesRings(const SessionChannel& channel) const {
  return channel.phase == ChannelPhase::kOn || (channel.phase == ChannelPhase::kStopping &&
                                                stop_after_sync_.contains(channel.definition.id));
}

// One that was found has no key: the keeper does not have it yet.
void Agent::TakeRing(SessionChannel& channel, ipc::Arrived& arrived, uint64_t instance) {
  const uint64_t id = channel.definition.id;
  // This memory is known already.
  if (processes_.FindRing(id, instance) != nullptr || channel.accounted.contains(instance)) {
    if (!arrived.key.empty()) ToKeeper(ipc::Drop{arrived.key});
    return;
  }
  const bool ended = !TakesRings(channel);
  RingEntry* ring = ended ? nullptr : processes_.Adopt(arrived, id, instance);
  if (ring == nullptr) {
    AccountLate(channel, arrived.fd, instance, ended ? "agent/late_ring" : "agent/too_many_rings");
    if (!arrived.key.empty()) ToKeeper(ipc::Drop{arrived.key});
    return;
  }
  TellRing(*ring);
  KillPoint("ring_queued");
  processes_.Watch(ring->process);
}

void Agent::AccountLate(SessionChannel& channel, const UniqueFd& ring, uint64_t instance,
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
  SaveOrNote(*Find(channel.definition.id).session);
}

}  // namespace weft::agent
