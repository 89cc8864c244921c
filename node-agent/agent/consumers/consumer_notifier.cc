// SPDX-License-Identifier: Apache-2.0
// See consumer_notifier.h.
#include "node-agent/agent/consumers/consumer_notifier.h"
#include "lib/base/copy_fd.h"

#include <map>
#include <set>
#include <string>
#include <utility>

namespace weft::agent {

bool ConsumerNotifier::IsHeldBack(const SessionChannel& channel) const {
  return channel.snapshot && (channel.phase == ChannelPhase::kOn ||
                              needs_.pending_stops.IsUntold(channel.definition.id));
}

void ConsumerNotifier::TellChannel(const SessionChannel& channel) {
  needs_.consumers.Tell(channel.consumer, [definition = channel.definition] { return definition; });
}

void ConsumerNotifier::TellRing(const RingEntry& ring) {
  const SessionChannel* of = needs_.sessions.FindChannel(ring.channel_id).channel;
  if (of == nullptr || IsHeldBack(*of)) return;
  // Found again by name: it may be done before there is room for the message.
  needs_.consumers.Tell(
      of->consumer, [this, channel = ring.channel_id, instance = ring.instance]() -> ipc::Message {
        const RingEntry* now = needs_.processes.FindRing(channel, instance);
        if (now == nullptr) return ipc::ForgetRing{channel, instance};
        const ProcessEntry* process = needs_.processes.Find(now->process);
        return ipc::Ring{.channel_id = channel,
                         .instance = instance,
                         .process = now->process,
                         .pid = process != nullptr ? process->pid : 0,
                         .uid = process != nullptr ? process->uid : 0,
                         .procname = process != nullptr ? process->procname : "",
                         .fd = CopyFd(now->fd)};
      });
}

// No process has it: its number is none of theirs.
void ConsumerNotifier::TellKernelRing(const SessionChannel& channel) {
  if (IsHeldBack(channel)) return;
  needs_.consumers.Tell(channel.consumer, [this, id = channel.definition.id]() -> ipc::Message {
    KernelChannels::RingOf ring = needs_.kernel.FindRing(id);
    if (ring.instance == 0) return ipc::ForgetRing{id, 0};
    return ipc::Ring{.channel_id = id, .instance = ring.instance, .fd = std::move(ring.fd)};
  });
}

void ConsumerNotifier::TellProcessGone(const ProcessEntry& process) {
  std::set<std::string> consumers;
  needs_.processes.ForEachRing([&](const RingEntry& ring) {
    const SessionChannel* channel = needs_.sessions.FindChannel(ring.channel_id).channel;
    if (ring.process == process.number && channel != nullptr) consumers.insert(channel->consumer);
  });
  for (const std::string& name : consumers)
    needs_.consumers.Tell(name, [number = process.number] { return ipc::ProcessGone{number}; });
}

void ConsumerNotifier::TellStop(const SessionChannel& channel) {
  const uint64_t id = channel.definition.id;
  if (channel.snapshot && channel.of_kernel()) TellKernelRing(channel);
  if (channel.snapshot)
    needs_.processes.ForEachRing([&](const RingEntry& ring) {
      if (ring.channel_id == id) TellRing(ring);
    });
  const bool waits = needs_.pending_stops.Waits(id);
  needs_.consumers.Tell(channel.consumer, [id, waits] { return ipc::StopChannel{id, waits}; });
}

void ConsumerNotifier::TellAll(ConsumerLink& link) {
  link.Tell([this, &link]() -> ipc::Message {
    const control::AreaConfig& config = needs_.areas.config();
    return link.Configuration(config.clock, config.slot_count);
  });
  std::set<uint64_t> channels;
  std::map<uint64_t, bool> stopping;  // whether another stop follows
  needs_.sessions.ForEachChannel([&](Session&, SessionChannel& channel) {
    if (channel.consumer != link.name() || channel.phase == ChannelPhase::kDrained) return;
    const uint64_t id = channel.definition.id;
    channels.insert(id);
    if (channel.phase == ChannelPhase::kStopping && !needs_.pending_stops.IsUntold(id))
      stopping[id] = needs_.pending_stops.Waits(id);
    link.Tell([definition = channel.definition] { return definition; });
    if (channel.of_kernel()) TellKernelRing(channel);
  });
  std::set<uint64_t> processes;
  needs_.processes.ForEachRing([&](const RingEntry& ring) {
    if (!channels.contains(ring.channel_id)) return;
    TellRing(ring);
    processes.insert(ring.process);
  });
  needs_.processes.ForEachGone([&](const ProcessEntry& process) {
    if (processes.contains(process.number))
      link.Tell([number = process.number] { return ipc::ProcessGone{number}; });
  });
  for (const auto& [id, waits] : stopping)
    link.Tell([stop = ipc::StopChannel{id, waits}] { return stop; });
  if (rings_known_) link.Tell([] { return ipc::StateComplete{}; });
}

void ConsumerNotifier::NoteRingsKnown() {
  rings_known_ = true;
  needs_.consumers.TellAll([] { return ipc::StateComplete{}; });
}

}  // namespace weft::agent
