// SPDX-License-Identifier: Apache-2.0
// Ring sets that the doorbell or the finder brought: identified, adopted, or counted as lost.
#include <cstring>

#include "lib/abi/control.h"
#include "lib/base/kill_point.h"
#include "node-agent/agent/agent.h"
#include "node-agent/agent/late_ring.h"

namespace weft::agent {
namespace {

// The message is foreign: its magic and kind are looked at, nothing else of it is used.
bool IsRingDoorbell(const std::string& hexadecimal) {
  weft_doorbell bell{};
  std::string bytes;
  for (size_t i = 0; i + 1 < hexadecimal.size(); i += 2)
    bytes.push_back(static_cast<char>(std::strtoul(hexadecimal.substr(i, 2).c_str(), nullptr, 16)));
  if (bytes.size() < sizeof(bell)) return false;
  std::memcpy(&bell, bytes.data(), sizeof(bell));
  return bell.magic == WEFT_DOORBELL_MAGIC && bell.kind == WEFT_DOORBELL_RING;
}

}  // namespace

void Agent::OnArrived(ipc::Arrived arrived) {
  KillPoint("arrived");
  if (!IsRingDoorbell(arrived.message)) return ToKeeper(ipc::Drop{arrived.key});
  finder_.Know(arrived.fd);
  finder_.AddMember(arrived.pid);
  const auto identified = IdentifyRing(arrived.fd);
  SessionChannel* channel = identified ? Find(identified->channel_id).channel : nullptr;
  const CallerId caller{.doorbell = &arrived.doorbell, .pid = arrived.pid, .pidfd = &arrived.pidfd};
  if (channel == nullptr || !orders_->Belongs(channel->container, caller)) {
    orders_->Note("process " + std::to_string(arrived.pid) +
                  " sent what is no ring set of a session's" +
                  (identified ? "" : ": " + identified.error().message));
    return ToKeeper(ipc::Drop{arrived.key});
  }
  TakeRing(*channel, arrived, identified->instance);
}

// One that was found has no key: the keeper does not have it yet.
void Agent::TakeRing(SessionChannel& channel, ipc::Arrived& arrived, uint64_t instance) {
  const uint64_t id = channel.definition.id;
  if (processes_.FindRing(id, instance) != nullptr) {  // the same memory once more
    if (!arrived.key.empty()) ToKeeper(ipc::Drop{arrived.key});
    return;
  }
  // After StopChannel the consumer takes no ring set of this channel any more.
  const bool ended = channel.phase == ChannelPhase::kDrained ||
                     channel.phase == ChannelPhase::kDefined ||
                     (channel.phase == ChannelPhase::kStopping && !stop_after_sync_.contains(id));
  if (ended) return AccountLate(channel, arrived, instance, "agent/late_ring");
  RingEntry* ring = processes_.Adopt(arrived, id, instance);
  if (ring == nullptr) return AccountLate(channel, arrived, instance, "agent/too_many_rings");
  TellRing(*ring);
  KillPoint("ring_queued");
  processes_.Watch(ring->process);
}

void Agent::AccountLate(SessionChannel& channel, const ipc::Arrived& arrived, uint64_t instance,
                        const char* reason) {
  if (channel.accounted.insert(instance).second) {
    auto totals = CloseAndCount(UniqueFd(dup(arrived.fd.get())));
    if (totals) {
      channel.own.rings += 1;
      channel.own.recorded += totals->recorded;
      if (totals->recorded != 0) channel.own.lost[reason] += totals->recorded;
      for (uint32_t i = 0; i < WEFT_DISCARD_REASONS; ++i)
        if (totals->discarded[i] != 0)
          channel.own.discarded[DiscardReasonName(i)] += totals->discarded[i];
    }
    SaveOrNote(*Find(channel.definition.id).session);
  }
  if (!arrived.key.empty()) ToKeeper(ipc::Drop{arrived.key});
}

}  // namespace weft::agent
