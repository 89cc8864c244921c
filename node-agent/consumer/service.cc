// SPDX-License-Identifier: Apache-2.0
// See service.h.
#include "node-agent/consumer/service.h"

#include <poll.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>

#include "node-agent/consumer/limits.h"

namespace weft::consumer {
int Service::Run() {
  while (!link_.exiting()) {
    HandleMessages();
    uint64_t delay = kPollIdle;
    if (consumer_ != nullptr) {
      // Acknowledgements of relays come first: they give room to the round, which may give it to
      // rings.
      relays_.Pump(AgentLink::NowNs());
      delay = consumer_->Round();
      if (relays_.Pump(AgentLink::NowNs())) delay = 0;
      TellReady();
      TellEnded();
      TellWentRound();
      TellDrained();
      TellStats();
    }
    SendQueued();
    std::vector<pollfd> polls;
    relays_.AddPolls(polls);
    link_.Wait(delay, std::move(polls));
  }
  if (consumer_ == nullptr) return 0;
  const Status flushed = FlushAll();
  if (!flushed) std::fprintf(stderr, "weft-consumer: %s\n", flushed.error().message.c_str());
  // The agent goes on from these counts when the next keeper has no journal.
  stats_ns_ = 0;
  TellStats();
  SendQueued();
  return flushed ? 0 : 1;
}

// Waits until relays acknowledge what was sent, then flushes the rest. Records that no relay
// acknowledges stay in their rings.
Status Service::FlushAll() {
  const uint64_t deadline = AgentLink::NowNs() + kLastWait;
  AwaitRelays(deadline);
  Status flushed = consumer_->FlushAll();
  if (flushed || !consumer_->waits_for_relay()) return flushed;
  AwaitRelays(deadline);
  return consumer_->waits_for_relay() ? std::move(flushed) : Status();
}

void Service::HandleMessages() {
  MeetAgent();
  while (auto message = link_.next()) {
    messages_++;
    Handle(std::move(*message));
    // Handling may have waited for a file, and an agent may have died meanwhile.
    MeetAgent();
  }
  if (!to_stop_.empty() && consumer_ != nullptr) consumer_->StopChannels(to_stop_);
  to_stop_.clear();
}

// Reports again to a new agent what only the agent before knew.
void Service::MeetAgent() {
  if (connection_ == link_.connection()) return;
  connection_ = link_.connection();
  defined_.clear();
  to_drain_.clear();
  stats_told_.clear();
  unsent_.clear();
  relays_.NewAgent();
  if (consumer_ == nullptr) return;
  for (Channel* channel : consumer_->Channels()) channel->RepeatEnded();
}

void Service::Handle(ipc::Message message) {
  if (auto* configure = std::get_if<ipc::Configure>(&message)) {
    return Configure(std::move(*configure));
  }
  if (consumer_ == nullptr) return;
  if (auto* channel = std::get_if<ipc::ChannelDefinition>(&message)) {
    AddChannel(*channel);
  } else if (auto* ring = std::get_if<ipc::Ring>(&message)) {
    AddRing(std::move(*ring));
  } else if (auto* gone = std::get_if<ipc::ProcessGone>(&message)) {
    consumer_->ProcessGone(gone->process);
  } else if (auto* move = std::get_if<ipc::MoveRing>(&message)) {
    const bool moved = consumer_->MoveRing(move->channel_id, move->instance, move->may_lose);
    // An answer that is lost is asked for again.
    if (moved && link_.connected())
      (void)link_.Send(ipc::RingMoved{move->channel_id, move->instance});
  } else if (auto* forget = std::get_if<ipc::ForgetRing>(&message)) {
    consumer_->ForgetRing(forget->channel_id, forget->instance);
  } else if (auto* stop = std::get_if<ipc::StopChannel>(&message)) {
    to_stop_.push_back(stop->channel_id);
    if (!stop->more_follows) to_drain_.insert(stop->channel_id);
  } else if (auto* end = std::get_if<ipc::ForgetChannel>(&message)) {
    consumer_->ForgetChannel(end->channel_id);
  } else if (auto* connection = std::get_if<ipc::ConnectionAnswer>(&message)) {
    relays_.Answer(std::move(*connection), AgentLink::NowNs());
  } else if (std::holds_alternative<ipc::StateComplete>(message)) {
    for (Channel* channel : consumer_->Channels()) {
      channel->DropAbsentRings();
      // An earlier agent died between Drained and ForgetChannel.
      if (!defined_.contains(channel->id())) to_drain_.insert(channel->id());
    }
  }
}

void Service::Configure(ipc::Configure message) {
  if (consumer_ != nullptr) return;
  Limits limits{.cpus = std::min(std::max(cpus_, message.slot_count), kMaxCpus)};
  limits.slots = limits.cpus + 1;
  limits.ended_rings = budget_.ended_rings;
  limits.many_rings = budget_.rings / 2;
  auto made = Consumer::Make({.clock = message.clock,
                              .realtime_offset_ns = message.realtime_offset_ns,
                              .clock_uuid = message.clock_uuid,
                              .limits = limits},
                             std::move(message.journal), sinks_,
                             [this](const std::string& text) { Notice(text); });
  if (!made) return Notice(made.error().message);
  consumer_ = std::move(*made);
}

void Service::AddChannel(const ipc::ChannelDefinition& message) {
  defined_.insert(message.id);
  waiting_.erase(message.id);
  const Status status = consumer_->AddChannel(message);
  if (!status) return Tell(ipc::ChannelReady{message.id, status.error().message});
  unready_.insert(message.id);
}

void Service::TellReady() {
  for (auto at = unready_.begin(); at != unready_.end();) {
    const Result<bool> ready = consumer_->Ready(*at);
    if (ready && !*ready) {
      ++at;
      continue;
    }
    if (!ready && ready.error().code == ErrorCode::kTimeout) {
      if (waiting_.insert(*at).second)
        Tell(ipc::ChannelReady{*at, ready.error().message, /*waits=*/true});
      ++at;
      continue;
    }
    waiting_.erase(*at);
    Tell(ipc::ChannelReady{*at, ready ? "" : ready.error().message});
    at = unready_.erase(at);
  }
}

void Service::AddRing(ipc::Ring message) {
  // A channel that could not be made: the agent was told, and counts its rings.
  if (consumer_->Find(message.channel_id) == nullptr) return;
  const Status status = consumer_->AddRing(message.channel_id, std::move(message.fd),
                                           message.instance, message.process);
  if (status) return;
  const int number = status.error().sys_errno;
  const bool refused = status.error().code == ErrorCode::kLimit || number == ENOMEM ||
                       number == EMFILE || number == ENFILE;
  Tell(ipc::RingDone{.channel_id = message.channel_id,
                     .instance = message.instance,
                     .corrupt = !refused,
                     .refused = refused,
                     .reason = status.error().message});
}

void Service::TellEnded() {
  for (Channel* channel : consumer_->Channels()) {
    for (Channel::Ended& ended : channel->TakeEnded()) {
      Tell(ipc::RingDone{.channel_id = channel->id(),
                         .instance = ended.instance,
                         .corrupt = ended.corrupt,
                         .reason = std::move(ended.reason)});
    }
  }
}

// If such a message does not arrive, nothing is lost: the ring stays where it is.
void Service::TellWentRound() {
  for (Channel* channel : consumer_->Channels()) {
    for (const auto& [instance, slot] : channel->TakeWentRound()) {
      if (link_.connected()) (void)link_.Send(ipc::SlotWentRound{channel->id(), instance, slot});
    }
  }
}

void Service::TellDrained() {
  for (Channel* channel : consumer_->Channels()) {
    if (!link_.connected() || !channel->drained() || !to_drain_.contains(channel->id())) continue;
    consumer_->Report();
    if (auto synced = consumer_->SyncFiles(channel->id()); !synced) {
      if (synced.error().code == ErrorCode::kTimeout) continue;
      Notice(synced.error().message);
    }
    Tell(ipc::Drained{channel->id(), channel->Counts()});
    to_drain_.erase(channel->id());
  }
}

void Service::TellStats() {
  const uint64_t now = AgentLink::NowNs();
  if (now - stats_ns_ < kStatsInterval) return;
  stats_ns_ = now;
  const uint64_t pending = consumer_->PendingChannels();
  uint64_t delivered = 0;
  consumer_->Report();
  for (Channel* channel : consumer_->Channels()) {
    const ipc::ChannelCounts counts = channel->Counts();
    delivered += counts.delivered;
    const auto told = stats_told_.find(channel->id());
    if (told != stats_told_.end() && told->second == counts) continue;
    // The next one says more than this one, should it not arrive.
    if (link_.connected() && link_.Send(ipc::Stats{channel->id(), counts})) {
      stats_told_[channel->id()] = counts;
    }
  }
  link_.SetHealth(consumer_->progress() + delivered + messages_ + link_.connection(), pending);
}

void Service::AwaitRelays(uint64_t deadline_ns) {
  while (consumer_->waits_for_relay() && AgentLink::NowNs() < deadline_ns) {
    relays_.Pump(AgentLink::NowNs());
    (void)consumer_->Round();
    std::vector<pollfd> polls;
    relays_.AddPolls(polls);
    const timespec timeout{0, static_cast<long>(kPollIdle)};
    (void)::ppoll(polls.data(), polls.size(), &timeout, nullptr);
  }
}

void Service::Tell(MustArrive message) {
  // Without an agent, messages are not kept: the next agent gets all of them again.
  if (link_.connected()) unsent_.push_back(std::move(message));
}

void Service::SendQueued() {
  while (!unsent_.empty()) {
    const Status sent =
        std::visit([this](const auto& m) { return link_.Send(m); }, unsent_.front());
    if (!sent) return;
    unsent_.pop_front();
  }
}

void Service::Notice(const std::string& text) {
  std::fprintf(stderr, "weft-consumer: %s\n", text.c_str());
  if (link_.connected()) (void)link_.Send(ipc::Notice{"weft-consumer", text});
}

}  // namespace weft::consumer
