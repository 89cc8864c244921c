// SPDX-License-Identifier: Apache-2.0
// The agent's side of its consumers: repeats the state on every connection, opens files, hears of
// progress and ends. A consumer is heard of its own channels only.
#include <fcntl.h>

#include "lib/base/kill_point.h"
#include "lib/ipc/limits.h"
#include "node-agent/agent/base/copy_fd.h"
#include "node-agent/agent/base/limits.h"
#include "node-agent/agent/core/agent.h"

namespace weft::agent {

void Agent::StartConsumer(const std::string& name) {
  if (!consumers_.contains(name)) {
    auto link = ConsumerLink::Begin(name);
    if (!link) return orders_->Note(link.error().message);
    ToKeeper(link->ToKeep());
    KillPoint("journal_kept");
    consumers_[name] = std::make_unique<ConsumerLink>(std::move(*link));
  }
  ToKeeper(ipc::StartConsumer{name});
}

void Agent::StopConsumer(const std::string& name) {
  const auto found = consumers_.find(name);
  if (found == consumers_.end()) return;
  if (found->second->channel().valid()) loop_.Unwatch(found->second->channel().fd());
  consumers_.erase(found);
  ToKeeper(ipc::StopConsumer{name});
  ToKeeper(ipc::Drop{kJournalKey + name});
}

const ConsumerLink* Agent::FindConsumer(const std::string& name) const {
  const auto found = consumers_.find(name);
  return found == consumers_.end() ? nullptr : found->second.get();
}

void Agent::ToConsumer(const std::string& consumer, ConsumerLink::Make make) {
  const auto found = consumers_.find(consumer);
  if (found != consumers_.end()) found->second->Tell(std::move(make));
}

void Agent::OnConnect(ipc::Connect connect) {
  const auto found = consumers_.find(connect.name);
  if (found == consumers_.end()) return;
  ConsumerLink& link = *found->second;
  if (link.channel().valid()) loop_.Unwatch(link.channel().fd());
  link.Connect(std::move(connect.fd));
  (void)loop_.WatchChannel(link.channel(),
                           [this, &link](auto message) { OnConsumer(link, std::move(message)); });
}

void Agent::OnConsumer(ConsumerLink& link, Result<ipc::Message> message) {
  if (!message) {
    loop_.Unwatch(link.channel().fd());
    link.Close();
    if (message.error().code == ErrorCode::kClosed) return;
    // Another connection comes with another consumer only.
    orders_->Note("weft-consumer: " + message.error().message);
    ToKeeper(ipc::StopConsumer{link.name()});
    ToKeeper(ipc::StartConsumer{link.name()});
    return;
  }
  ++handled_;
  if (const auto* hello = std::get_if<ipc::Hello>(&*message)) {
    if (hello->version != ipc::kProtocolVersion)
      return orders_->Note("weft-consumer is of another version");
    KillPoint("greeted");
    link.Greeted();
    TellConsumerAll(link);
  } else if (const auto* ready = std::get_if<ipc::ChannelReady>(&*message)) {
    OnChannelReady(link, *ready);
  } else if (const auto* request = std::get_if<ipc::FileRequest>(&*message)) {
    OnFileRequest(link, *request);
  } else if (const auto* connection = std::get_if<ipc::ConnectionRequest>(&*message)) {
    OnConnectionRequest(link, *connection);
  } else if (auto* stats = std::get_if<ipc::Stats>(&*message)) {
    SessionChannel* channel = Find(link, stats->channel_id).channel;
    if (channel != nullptr && channel->phase != ChannelPhase::kDrained)
      channel->reported = std::move(stats->counts);
  } else if (const auto* done = std::get_if<ipc::RingDone>(&*message)) {
    OnRingDone(link, *done);
  } else if (const auto* said = std::get_if<ipc::SlotWentRound>(&*message)) {
    OnSlotWentRound(link, *said);
  } else if (auto* drained = std::get_if<ipc::Drained>(&*message)) {
    OnDrained(link, std::move(*drained));
  } else if (auto* notice = std::get_if<ipc::Notice>(&*message)) {
    orders_->Note(notice->message);
    ToKeeper(std::move(*message));
  }
}

void Agent::OnRingDone(ConsumerLink& link, const ipc::RingDone& done) {
  SessionChannel* channel = Find(link, done.channel_id).channel;
  const RingEntry* ring = processes_.FindRing(done.channel_id, done.instance);
  // Of a channel that is forgotten there is none.
  if (channel == nullptr && ring != nullptr) return;
  if (done.refused && channel != nullptr && ring != nullptr)
    AccountLate(*channel, ring->fd, done.instance, "consumer/too_many_rings");
  if (done.corrupt) {
    const ProcessEntry* process = ring != nullptr ? processes_.Find(ring->process) : nullptr;
    // Its process still maps it.
    if (channel != nullptr) channel->accounted.insert(done.instance);
    if (process != nullptr)
      orders_->Note("the ring set of process " + std::to_string(process->pid) + " (" +
                    process->procname + ") is corrupt: " + done.reason);
  }
  KillPoint("ring_done");
  processes_.Drop(done.channel_id, done.instance);
  KillPoint("ring_dropped");
  link.Tell(
      [id = done.channel_id, instance = done.instance] { return ipc::ForgetRing{id, instance}; });
}

void Agent::OnSlotWentRound(ConsumerLink& link, const ipc::SlotWentRound& said) {
  if (Find(link, said.channel_id).channel == nullptr) return;
  const RingEntry* ring = processes_.FindRing(said.channel_id, said.instance);
  const ProcessEntry* process = ring != nullptr ? processes_.Find(ring->process) : nullptr;
  if (process != nullptr && !process->gone && process->pidfd)
    huge_pages_.Move(ring->fd, said.slot, process->pid, process->pidfd);
}

// A snapshot's ring sets go to the consumer when its channel stops.
bool Agent::IsHeldBack(uint64_t channel_id) {
  const SessionChannel* channel = Find(channel_id).channel;
  return channel != nullptr && channel->snapshot &&
         (channel->phase == ChannelPhase::kOn ||
          (stop_after_sync_.contains(channel_id) && !stopped_early_.contains(channel_id)));
}

void Agent::TellRing(const RingEntry& ring) {
  const SessionChannel* of = Find(ring.channel_id).channel;
  if (of == nullptr || IsHeldBack(ring.channel_id)) return;
  // Found again by name: it may be done before there is room for the message.
  ToConsumer(of->consumer,
             [this, channel = ring.channel_id, instance = ring.instance]() -> ipc::Message {
               const RingEntry* now = processes_.FindRing(channel, instance);
               if (now == nullptr) return ipc::ForgetRing{channel, instance};
               const ProcessEntry* process = processes_.Find(now->process);
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
void Agent::TellKernelRing(const SessionChannel& channel) {
  if (IsHeldBack(channel.definition.id)) return;
  ToConsumer(channel.consumer, [this, id = channel.definition.id]() -> ipc::Message {
    KernelChannels::RingOf ring = kernel_.Find(id);
    if (ring.instance == 0) return ipc::ForgetRing{id, 0};
    return ipc::Ring{.channel_id = id, .instance = ring.instance, .fd = std::move(ring.fd)};
  });
}

// Those who have its rings: what is in them is final.
void Agent::TellProcessGone(const ProcessEntry& process) {
  std::set<std::string> consumers;
  processes_.ForEachRing([&](const RingEntry& ring) {
    const SessionChannel* channel = Find(ring.channel_id).channel;
    if (ring.process == process.number && channel != nullptr) consumers.insert(channel->consumer);
  });
  for (const std::string& name : consumers)
    ToConsumer(name, [number = process.number] { return ipc::ProcessGone{number}; });
}

void Agent::TellConsumerAll(ConsumerLink& link) {
  link.Tell([this, &link]() -> ipc::Message {
    return link.Configuration(containers_.config().clock, containers_.config().slot_count);
  });
  std::set<uint64_t> channels, stopping;
  ForEachChannel([&](Session&, SessionChannel& channel) {
    if (channel.consumer != link.name() || channel.phase == ChannelPhase::kDrained) return;
    const uint64_t id = channel.definition.id;
    channels.insert(id);
    const bool waits = stop_after_sync_.contains(id) && !stopped_early_.contains(id);
    if (channel.phase == ChannelPhase::kStopping && !waits) stopping.insert(id);
    link.Tell([definition = channel.definition] { return definition; });
    if (channel.of_kernel()) TellKernelRing(channel);
  });
  std::set<uint64_t> processes;
  processes_.ForEachRing([&](const RingEntry& ring) {
    if (!channels.contains(ring.channel_id)) return;
    TellRing(ring);
    processes.insert(ring.process);
  });
  processes_.ForEachGone([&](const ProcessEntry& process) {
    if (processes.contains(process.number))
      link.Tell([number = process.number] { return ipc::ProcessGone{number}; });
  });
  for (const uint64_t id : stopping) link.Tell([id] { return ipc::StopChannel{id}; });
  link.Tell([] { return ipc::StateComplete{}; });
}

void Agent::OnChannelReady(ConsumerLink& link, const ipc::ChannelReady& ready) {
  const auto [session, channel] = Find(link, ready.channel_id);
  if (channel == nullptr) return;
  KillPoint("channel_ready");
  channel->ready = ready.error.empty();
  channel->refused = !channel->ready;
  if (channel->refused) orders_->ChannelFailed(*session, ready.error);
  orders_->Changed(*session);
  GiveUpRefused();
}

void Agent::OnFileRequest(ConsumerLink& link, const ipc::FileRequest& request) {
  auto file = output_ ? output_->OpenFile(request.name)
                      : Result<UniqueFd>(Fail(ErrorCode::kNotFound, "no output folder"));
  int error = 0;
  UniqueFd fd;
  if (file) {
    fd = std::move(*file);
  } else {
    error = file.error().sys_errno != 0 ? file.error().sys_errno : EINVAL;
    orders_->Note(request.name + ": " + file.error().message);
  }
  // The descriptor is here already: no later than now is there one more of it.
  auto held = std::make_shared<UniqueFd>(std::move(fd));
  link.Tell([number = request.request, error, held]() -> ipc::Message {
    return ipc::FileAnswer{.request = number, .error = error, .fd = std::move(*held)};
  });
}

// A connection that is made again may name a channel that has ended meanwhile.
const ipc::RelayAddress* Agent::RelayOf(const ConsumerLink& link, uint64_t channel_id) const {
  for (const auto& [name, session] : sessions_) {
    const bool ended = session->order && session->order->metadata.name_space == link.name() &&
                       session->retired_ids.contains(channel_id);
    const SessionChannel* channel = session->Find(channel_id);
    if (ended || (channel != nullptr && channel->consumer == link.name()))
      return session->relay.host.empty() ? nullptr : &session->relay;
  }
  return nullptr;
}

// A consumer names a channel, and is connected to the relay of that one only.
void Agent::OnConnectionRequest(ConsumerLink& link, const ipc::ConnectionRequest& request) {
  const auto answer = [this, consumer = link.name(), asked_on = link.connection(),
                       number = request.request](Result<UniqueFd> socket) {
    const ConsumerLink* now = FindConsumer(consumer);
    // Another consumer's requests have the same numbers.
    if (now == nullptr || asked_on != now->connection()) return;
    auto held = std::make_shared<Result<UniqueFd>>(std::move(socket));
    ToConsumer(consumer, [number, held]() -> ipc::Message {
      if (!*held) return ipc::ConnectionAnswer{.request = number, .error = held->error().message};
      return ipc::ConnectionAnswer{.request = number, .error = "", .fd = std::move(**held)};
    });
  };
  const ipc::RelayAddress* relay = RelayOf(link, request.channel_id);
  if (relay == nullptr) return answer(Fail(ErrorCode::kNotFound, "the channel has no relay"));
  dialer_.Dial(relay->host, request.data ? relay->data_port : relay->control_port, answer);
}

void Agent::OnDrained(ConsumerLink& link, ipc::Drained drained) {
  // Ring sets that wait for descriptors are still to come; then it is stopped again.
  if (stop_after_sync_.contains(drained.channel_id)) return;
  const auto [session, channel] = Find(link, drained.channel_id);
  link.Tell([id = drained.channel_id] { return ipc::ForgetChannel{id}; });
  if (channel == nullptr) return;
  if (channel->phase == ChannelPhase::kStopping) {
    channel->reported = std::move(drained.counts);
    channel->phase = ChannelPhase::kDrained;
  }
  KillPoint("drained");
  AccountRings(*channel);
  // First on disk: a ring set that nobody keeps any more, of a channel that is not drained there,
  // is a new one to the next agent, and all that it ever took is late.
  SaveOrNote(*session);
  KillPoint("drained_saved");
  processes_.DropChannel(channel->definition.id);
  kernel_.Forget(channel->definition.id);
  KillPoint("drained_dropped");
  // What a process was making when its events were turned off counts as late.
  finder_.LookAtAll();
  orders_->Changed(*session);
}

}  // namespace weft::agent
