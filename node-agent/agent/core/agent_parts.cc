// SPDX-License-Identifier: Apache-2.0
// See agent_parts.h.
#include "node-agent/agent/core/agent_parts.h"

#include <utility>

#include "node-agent/agent/base/clock_choice.h"
#include "node-agent/agent/base/limits.h"

namespace weft::agent {
namespace {

std::function<void(std::string)> NoteTo(SessionListener& listener) {
  return [&listener](std::string text) { listener.Note(std::move(text)); };
}

}  // namespace

// Callbacks name parts that are made later: none is called before all are there.
AgentParts::AgentParts(ipc::Loop& loop, std::string dir, const JournalFiles& journals,
                       const Send& keeper, SessionListener& listener, ContainerLookup& lookup)
    : sessions(std::move(dir), NoteTo(listener)),
      finder([this](FoundMemory found) { return OnFound(std::move(found)); }),
      doorbells(keeper),
      areas(
          {.slot_count = PossibleCpus("/sys"), .clock = ChooseClock("/sys")}, finder,
          [this](const std::string& container) { return sessions.InForce(container); }, keeper,
          NoteTo(listener)),
      pools(keeper,
            [this](const MemoryPools::Visit& visit) {
              processes.ForEachRing([&](const RingEntry& ring) {
                const SessionChannel* channel = sessions.FindChannel(ring.channel_id).channel;
                if (channel != nullptr) visit(channel->container, ring.bytes);
              });
            }),
      attached(finder, areas, keeper),
      kernel(sessions, listener, keeper, [this] { return areas.config().clock; }),
      processes(
          loop, keeper, [this](const ProcessEntry& process) { notifier.TellProcessGone(process); },
          [this](const RingEntry& ring, uint64_t before) {
            const SessionChannel* channel = sessions.FindChannel(ring.channel_id).channel;
            if (channel != nullptr) pools.Return(channel->container, before, ring.bytes);
          }),
      rings(
          {.sessions = sessions,
           .pending_stops = pending_stops,
           .processes = processes,
           .finder = finder,
           .doorbells = doorbells,
           .lookup = lookup,
           .keeper = keeper,
           .note = NoteTo(listener),
           .note_of = [this](const std::string& of, const std::string& text) { NoteOf(of, text); },
           .adopted = [this](const RingEntry& ring) { notifier.TellRing(ring); }}),
      consumers(
          loop, keeper, NoteTo(listener),
          [this](ConsumerLink& link, ipc::Message message) {
            OnConsumer(link, std::move(message));
          },
          journals),
      requests(loop, consumers, sessions, NoteTo(listener),
               [&listener](Session& session) { listener.SessionChanged(session); }),
      notifier({.consumers = consumers,
                .sessions = sessions,
                .pending_stops = pending_stops,
                .processes = processes,
                .kernel = kernel,
                .areas = areas}),
      channels({.loop = loop,
                .listener = listener,
                .keeper = keeper,
                .sessions = sessions,
                .pending_stops = pending_stops,
                .areas = areas,
                .kernel = kernel,
                .processes = processes,
                .finder = finder,
                .rings = rings,
                .consumers = consumers,
                .notifier = notifier}),
      keeper_(keeper),
      listener_(listener),
      lookup_(lookup) {}

void AgentParts::TakeKept(ipc::Kept& kept) {
  if (consumers.TakeKept(kept) || doorbells.TakeKept(kept) || attached.TakeKept(kept) ||
      pools.TakeKept(kept) || areas.TakeKept(kept) || kernel.TakeKept(kept))
    return;
  (void)processes.Restore(kept);
}

void AgentParts::Restored() {
  kernel.Restored([this](const SessionChannel& channel) {
    return consumers.Find(channel.consumer) != nullptr;
  });
  areas.Restored();
  processes.ForEachRing([this](const RingEntry& ring) { finder.Know(ring.fd); });
}

void AgentParts::SettleMemory() {
  if (!rings.has_begun()) return;
  processes.ForEachLeft(kLooksUntilMoved, [this](const RingEntry& ring) {
    const SessionChannel* channel = sessions.FindChannel(ring.channel_id).channel;
    if (channel == nullptr || !pools.Has(channel->container)) return;
    const ipc::MoveRing move{ring.channel_id, ring.instance, pools.IsShort(channel->container)};
    consumers.Tell(channel->consumer, [move] { return move; });
  });
  pools.Compare();
}

Finder::Verdict AgentParts::OnFound(FoundMemory found) {
  if (!found.is_control) return rings.TakeFound(std::move(found));
  const auto container = lookup_.ContainerOf(found.pid);
  if (!container) return Finder::Verdict::kLater;  // a session may ask for it
  const Status adopted = areas.Adopt(*container, found.inode, std::move(found.fd),
                                     {lookup_.OwnerOf(*container), found.pid});
  if (adopted) return Finder::Verdict::kKnown;
  return adopted.error().code == ErrorCode::kLimit ? Finder::Verdict::kLater
                                                   : Finder::Verdict::kTryAgain;
}

void AgentParts::OnConsumer(ConsumerLink& link, ipc::Message message) {
  if (std::holds_alternative<ipc::Hello>(message)) {
    notifier.TellAll(link);
  } else if (const auto* ready = std::get_if<ipc::ChannelReady>(&message)) {
    channels.OnReady(link, *ready);
  } else if (const auto* request = std::get_if<ipc::FileRequest>(&message)) {
    requests.OpenFile(link, *request);
  } else if (const auto* connection = std::get_if<ipc::ConnectionRequest>(&message)) {
    requests.Connect(link, *connection);
  } else if (const auto* refusal = std::get_if<ipc::RelayRefusal>(&message)) {
    requests.NoteRefusal(link, *refusal);
  } else if (auto* stats = std::get_if<ipc::Stats>(&message)) {
    channels.OnStats(link, std::move(*stats));
  } else if (const auto* done = std::get_if<ipc::RingDone>(&message)) {
    SessionChannel* channel = sessions.FindChannelOf(link.name(), done->channel_id).channel;
    if (!rings.Finish(channel, *done)) return;
    link.Tell([id = done->channel_id, instance = done->instance] {
      return ipc::ForgetRing{id, instance};
    });
  } else if (const auto* slot = std::get_if<ipc::SlotWentRound>(&message)) {
    if (sessions.FindChannelOf(link.name(), slot->channel_id).channel != nullptr)
      rings.MoveToHugePages(*slot);
  } else if (const auto* moved = std::get_if<ipc::RingMoved>(&message)) {
    if (sessions.FindChannelOf(link.name(), moved->channel_id).channel != nullptr)
      processes.MovedAway(moved->channel_id, moved->instance);
  } else if (auto* drained = std::get_if<ipc::Drained>(&message)) {
    channels.OnDrained(link, std::move(*drained));
  } else if (const auto* notice = std::get_if<ipc::Notice>(&message)) {
    if (NoteOf("consumer " + link.name(), notice->message)) keeper_(std::move(message));
  }
}

bool AgentParts::NoteOf(const std::string& of, const std::string& text) {
  const auto end = notes_.Take(of, LogRate::Clock::now());
  if (end) listener_.Note(text + *end);
  return end.has_value();
}

}  // namespace weft::agent
