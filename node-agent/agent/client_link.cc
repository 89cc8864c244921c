// SPDX-License-Identifier: Apache-2.0
// The agent's side of the cli: sessions are created, started, stopped and looked at.
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>

#include "node-agent/agent/agent.h"
#include "node-agent/agent/late_ring.h"
#include "node-agent/agent/limits.h"

namespace weft::agent {
namespace {

Result<std::string> ReadWhole(const UniqueFd& fd) {
  struct stat st{};
  if (fstat(fd.get(), &st) != 0) return FailErrno("Traces");
  if (st.st_size < 0 || static_cast<size_t>(st.st_size) > kMaxTracesBytes)
    return Fail(ErrorCode::kLimit, "the Traces are larger than 4 MiB");
  std::string text(static_cast<size_t>(st.st_size), '\0');
  size_t done = 0;
  while (done < text.size()) {
    const ssize_t n =
        pread(fd.get(), text.data() + done, text.size() - done, static_cast<off_t>(done));
    if (n < 0) return FailErrno("Traces");
    if (n == 0) break;
    done += static_cast<size_t>(n);
  }
  text.resize(done);
  return text;
}

}  // namespace

void Agent::OnClientConnects() {
  UniqueFd fd(accept4(clients_socket_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
  // The socket's mode (0600) says who may connect: this user.
  if (!fd || clients_.size() >= kMaxClients) return;
  const uint64_t number = next_client_++;
  Client& client = clients_[number];
  client.channel = ipc::Channel(std::move(fd));
  (void)loop_.WatchChannel(client.channel,
                           [this, number](auto message) { OnClient(number, std::move(message)); });
}

void Agent::OnClient(uint64_t number, Result<ipc::Message> message) {
  auto it = clients_.find(number);
  if (it == clients_.end()) return;
  Client& client = it->second;
  if (!message) {
    loop_.Unwatch(client.channel.fd());
    clients_.erase(it);
    return;
  }
  ++handled_;
  if (const auto* create = std::get_if<ipc::CreateSession>(&*message)) {
    Create(client, *create);
  } else if (std::holds_alternative<ipc::StartSession>(*message)) {
    client.waits_for_start = true;
    StartSession();
  } else if (std::holds_alternative<ipc::StopSession>(*message)) {
    client.waits_for_stop = true;
    StopSession();
  } else if (std::holds_alternative<ipc::QuerySession>(*message)) {
    (void)client.channel.Send(State());
  } else if (std::holds_alternative<ipc::DestroySession>(*message)) {
    owner_gone_ = true;
    StopSession();
  }
}

void Agent::Create(Client& client, const ipc::CreateSession& command) {
  const auto refuse = [&](const Error& error, const char* kind = "input") {
    (void)client.channel.Send(ipc::Refused{kind, error.message});
  };
  // Its owner asks again when an earlier agent died before it answered.
  if (!session_.channels.empty()) {
    (void)client.channel.Send(State());
    return;
  }
  const auto text = ReadWhole(command.traces);
  if (!text) return refuse(text.error());
  auto session = Session::Create(command, *text);
  if (!session) return refuse(session.error());
  std::optional<OutputFolder> folder;
  if (command.relay.host.empty()) {
    auto output = OutputFolder::Open(command.output);
    if (!output) return refuse(output.error(), "output");
    folder.emplace(std::move(*output));
  }
  if (const Status attached = Attach(command.attach); !attached) {
    Detach(command.attach);
    return refuse(attached.error());
  }
  session_ = std::move(*session);
  output_ = std::move(folder);
  if (const Status saved = Save(); !saved) {
    session_ = Session();
    Detach(command.attach);
    return refuse(saved.error(), "tracing");
  }
  ToKeeper(ipc::StartConsumer{kConsumerName});
  (void)client.channel.Send(State());
}

void Agent::StartSession() {
  if (session_.phase() == ipc::Phase::kCreated) {
    const int64_t now = MonotonicNow();
    for (SessionChannel& channel : session_.channels) {
      channel.phase = ChannelPhase::kOn;
      if (channel.duration) channel.stop_at_ns = now + channel.duration->count();
    }
    Status status = Save();
    if (status) status = Publish();
    if (!status) Note(status.error().message);
    for (const auto delay : kFirstLooks) loop_.After(delay, [this] { Look(); });
  }
  AnswerWaiting();
}

void Agent::StopSession() {
  StopChannels([](const SessionChannel& channel) { return channel.phase == ChannelPhase::kOn; });
  if (consumer_given_up_) FinishWithoutConsumer("consumer", "failed");
  AnswerWaiting();
}

// Off in the control area first; then the keeper's Sync, so that every ring set that was announced
// before is adopted, and a look for those that could not be; then the consumer.
void Agent::StopChannels(const std::function<bool(const SessionChannel&)>& which) {
  bool any = false;
  for (SessionChannel& channel : session_.channels) {
    if (!which(channel)) continue;
    channel.phase = ChannelPhase::kStopping;
    stop_after_sync_[channel.definition.id] = next_sync_;
    any = true;
  }
  if (!any) return;
  Status status = Save();
  if (status) status = Publish();
  if (!status) Note(status.error().message);
  ToKeeper(ipc::Sync{next_sync_++});
}

void Agent::OnSynced(uint64_t number) {
  const bool any = std::ranges::any_of(stop_after_sync_,
                                       [&](const auto& entry) { return entry.second <= number; });
  if (any) finder_.LookAtAll();
  std::vector<uint64_t> known;
  std::erase_if(stop_after_sync_, [&](const auto& entry) {
    if (entry.second <= number) known.push_back(entry.first);
    return entry.second <= number;
  });
  for (const uint64_t id : known) {
    const SessionChannel* channel = session_.Find(id);
    if (channel != nullptr && channel->snapshot)
      processes_.ForEachRing([&](const RingEntry& ring) {
        if (ring.channel_id == id) TellRing(ring);
      });
    ToConsumer([id] { return ipc::StopChannel{id}; });
  }
  if (consumer_given_up_) FinishWithoutConsumer("consumer", "failed");
}

// The consumer keeps failing, or its relay is away for good: what was not written is lost, and counted.
void Agent::FinishWithoutConsumer(const std::string& stage, const std::string& reason) {
  const std::string lost = stage + "/" + reason;
  for (SessionChannel& channel : session_.channels) {
    if (channel.phase != ChannelPhase::kStopping ||
        stop_after_sync_.contains(channel.definition.id))
      continue;
    channel.reported.lost[lost] += channel.reported.in_flight;
    channel.reported.in_flight = 0;
    channel.reported.tail_unknown += processes_.RingsOf(channel.definition.id);
    channel.phase = ChannelPhase::kDrained;
    ForgetRings(channel);
    Note("Trace \"" + channel.definition.trace + "\" ended without its " + stage +
         ": what was in its buffers is lost");
  }
  for (auto& [number, client] : clients_) {
    if (!client.waits_for_start) continue;
    client.waits_for_start = false;
    (void)client.channel.Send(
        ipc::Refused{"tracing", "weft-consumer does not start: " + consumer_reason_});
  }
  if (const Status saved = Save(); !saved) Note(saved.error().message);
  AnswerWaiting();
}

void Agent::AnswerWaiting() {
  const ipc::Phase phase = session_.phase();
  for (auto& [number, client] : clients_) {
    const bool started =
        client.waits_for_start && phase != ipc::Phase::kCreated && phase != ipc::Phase::kStarting;
    const bool stopped =
        client.waits_for_stop && (phase == ipc::Phase::kStopped || phase == ipc::Phase::kNone ||
                                  phase == ipc::Phase::kCreated);
    if (!started && !stopped) continue;
    if (started) client.waits_for_start = false;
    if (stopped) client.waits_for_stop = false;
    (void)client.channel.Send(State());
  }
}

ipc::SessionState Agent::State() const {
  ipc::SessionState state = session_.State();
  state.processes = processes_.Alive();
  state.recoveries = recoveries_;
  return state;
}

}  // namespace weft::agent
