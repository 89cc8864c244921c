// SPDX-License-Identifier: Apache-2.0
// The agent's side of its consumer: repeats the state on every connection, opens files, hears of
// progress and ends.
#include <fcntl.h>

#include "lib/ipc/limits.h"
#include "node-agent/agent/agent.h"
#include "node-agent/agent/limits.h"

namespace weft::agent {

// Messages are made when they can be sent, so that their descriptors are copied only then.
void Agent::ToConsumer(std::function<ipc::Message()> make) {
  if (!consumer_greeted_ || to_consumer_.size() >= kMaxConsumerBacklog) return;
  to_consumer_.push_back(std::move(make));
}

void Agent::PumpConsumer() {
  while (!to_consumer_.empty() && consumer_.valid() && !consumer_.wants_write()) {
    auto make = std::move(to_consumer_.front());
    to_consumer_.pop_front();
    if (const Status sent = consumer_.Send(make()); !sent) return;
  }
}

void Agent::OnConnect(ipc::Connect connect) {
  if (consumer_.valid()) loop_.Unwatch(consumer_.fd());
  to_consumer_.clear();
  consumer_greeted_ = false;
  consumer_connection_++;
  consumer_ = ipc::Channel(std::move(connect.fd));
  (void)loop_.WatchChannel(consumer_, [this](auto message) { OnConsumer(std::move(message)); });
}

void Agent::OnConsumer(Result<ipc::Message> message) {
  if (!message) {
    if (message.error().code != ErrorCode::kClosed)
      Note("weft-consumer: " + message.error().message);
    loop_.Unwatch(consumer_.fd());
    consumer_.Close();
    consumer_greeted_ = false;
    to_consumer_.clear();
    return;
  }
  ++handled_;
  if (const auto* hello = std::get_if<ipc::Hello>(&*message)) {
    if (hello->version != ipc::kProtocolVersion) return Note("weft-consumer is of another version");
    consumer_greeted_ = true;
    TellConsumerAll();
  } else if (const auto* ready = std::get_if<ipc::ChannelReady>(&*message)) {
    OnChannelReady(*ready);
  } else if (const auto* request = std::get_if<ipc::FileRequest>(&*message)) {
    OnFileRequest(*request);
  } else if (const auto* connection = std::get_if<ipc::ConnectionRequest>(&*message)) {
    OnConnectionRequest(*connection);
  } else if (auto* stats = std::get_if<ipc::Stats>(&*message)) {
    SessionChannel* channel = session_.Find(stats->channel_id);
    if (channel != nullptr && channel->phase != ChannelPhase::kDrained)
      channel->reported = std::move(stats->counts);
  } else if (const auto* done = std::get_if<ipc::RingDone>(&*message)) {
    if (done->corrupt) {
      const RingEntry* ring = processes_.FindRing(done->channel_id, done->instance);
      const ProcessEntry* process = ring != nullptr ? processes_.Find(ring->process) : nullptr;
      // Its process still maps it.
      SessionChannel* channel = session_.Find(done->channel_id);
      if (channel != nullptr) channel->accounted.insert(done->instance);
      if (process != nullptr)
        Note("the ring set of process " + std::to_string(process->pid) + " (" + process->procname +
             ") is corrupt: " + done->reason);
    }
    processes_.Drop(done->channel_id, done->instance);
    ToConsumer([channel = done->channel_id, instance = done->instance] {
      return ipc::ForgetRing{channel, instance};
    });
  } else if (auto* drained = std::get_if<ipc::Drained>(&*message)) {
    OnDrained(std::move(*drained));
  } else if (auto* notice = std::get_if<ipc::Notice>(&*message)) {
    Note(notice->message);
    ToKeeper(std::move(*message));
  }
}

// A snapshot's ring sets go to the consumer when its channel stops.
bool Agent::IsHeldBack(uint64_t channel_id) {
  const SessionChannel* channel = session_.Find(channel_id);
  return channel != nullptr && channel->snapshot &&
         (channel->phase == ChannelPhase::kOn || stop_after_sync_.contains(channel_id));
}

void Agent::TellRing(const RingEntry& ring) {
  if (IsHeldBack(ring.channel_id)) return;
  // Found again by name: it may be done before there is room for the message.
  ToConsumer([this, channel = ring.channel_id, instance = ring.instance]() -> ipc::Message {
    const RingEntry* now = processes_.FindRing(channel, instance);
    if (now == nullptr) return ipc::ForgetRing{channel, instance};
    const ProcessEntry* process = processes_.Find(now->process);
    return ipc::Ring{.channel_id = channel,
                     .instance = instance,
                     .process = now->process,
                     .pid = process != nullptr ? process->pid : 0,
                     .uid = process != nullptr ? process->uid : 0,
                     .procname = process != nullptr ? process->procname : "",
                     .fd = UniqueFd(fcntl(now->fd.get(), F_DUPFD_CLOEXEC, 3))};
  });
}

void Agent::TellConsumerAll() {
  ToConsumer([this]() -> ipc::Message {
    return ipc::Configure{.journal = UniqueFd(fcntl(journal_.get(), F_DUPFD_CLOEXEC, 3)),
                          .clock = control_->config().clock,
                          .slot_count = control_->config().slot_count,
                          .realtime_offset_ns = session_.realtime_offset_ns,
                          .clock_uuid = session_.clock_uuid};
  });
  for (const SessionChannel& channel : session_.channels)
    if (channel.phase != ChannelPhase::kDrained)
      ToConsumer([definition = channel.definition] { return definition; });
  processes_.ForEachRing([this](const RingEntry& ring) { TellRing(ring); });
  processes_.ForEachGone([this](const ProcessEntry& process) {
    ToConsumer([number = process.number] { return ipc::ProcessGone{number}; });
  });
  for (const SessionChannel& channel : session_.channels)
    if (channel.phase == ChannelPhase::kStopping &&
        !stop_after_sync_.contains(channel.definition.id))
      ToConsumer([id = channel.definition.id] { return ipc::StopChannel{id}; });
  ToConsumer([] { return ipc::StateComplete{}; });
}

void Agent::OnChannelReady(const ipc::ChannelReady& ready) {
  SessionChannel* channel = session_.Find(ready.channel_id);
  if (channel == nullptr) return;
  channel->ready = ready.error.empty();
  if (!ready.error.empty()) {
    for (auto& [number, client] : clients_) {
      if (!client.waits_for_start) continue;
      client.waits_for_start = false;
      (void)client.channel.Send(ipc::Refused{"output", ready.error});
    }
  }
  AnswerWaiting();
}

void Agent::OnFileRequest(const ipc::FileRequest& request) {
  auto file = output_ ? output_->OpenFile(request.name)
                      : Result<UniqueFd>(Fail(ErrorCode::kNotFound, "no output folder"));
  int error = 0;
  UniqueFd fd;
  if (file) {
    fd = std::move(*file);
  } else {
    error = file.error().sys_errno != 0 ? file.error().sys_errno : EINVAL;
    Note(request.name + ": " + file.error().message);
  }
  // The descriptor is here already: no later than now is there one more of it.
  auto held = std::make_shared<UniqueFd>(std::move(fd));
  ToConsumer([number = request.request, error, held]() -> ipc::Message {
    return ipc::FileAnswer{.request = number, .error = error, .fd = std::move(*held)};
  });
}

// A consumer names a channel, and is connected to the relay of that one only.
void Agent::OnConnectionRequest(const ipc::ConnectionRequest& request) {
  const uint64_t asked_on = consumer_connection_;
  const auto answer = [this, asked_on, number = request.request](Result<UniqueFd> socket) {
    // Another consumer's requests have the same numbers.
    if (asked_on != consumer_connection_) return;
    auto held = std::make_shared<Result<UniqueFd>>(std::move(socket));
    ToConsumer([number, held]() -> ipc::Message {
      if (!*held) return ipc::ConnectionAnswer{.request = number, .error = held->error().message};
      return ipc::ConnectionAnswer{.request = number, .error = "", .fd = std::move(**held)};
    });
  };
  const SessionChannel* channel = session_.Find(request.channel_id);
  if (channel == nullptr || channel->definition.relay.host.empty()) {
    return answer(Fail(ErrorCode::kNotFound, "the channel has no relay"));
  }
  const ipc::RelayAddress& relay = channel->definition.relay;
  dialer_.Dial(relay.host, request.data ? relay.data_port : relay.control_port, answer);
}

void Agent::OnDrained(ipc::Drained drained) {
  SessionChannel* channel = session_.Find(drained.channel_id);
  if (channel == nullptr) return;
  if (channel->phase == ChannelPhase::kStopping) {
    channel->reported = std::move(drained.counts);
    channel->phase = ChannelPhase::kDrained;
  }
  ForgetRings(*channel);
  // What a process was making when its events were turned off counts as late.
  finder_.LookAtAll();
  if (const Status saved = Save(); !saved) Note(saved.error().message);
  ToConsumer([id = drained.channel_id] { return ipc::ForgetChannel{id}; });
  AnswerWaiting();
}

}  // namespace weft::agent
