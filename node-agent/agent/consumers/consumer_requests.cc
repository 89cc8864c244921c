// SPDX-License-Identifier: Apache-2.0
// See consumer_requests.h.
#include "node-agent/agent/consumers/consumer_requests.h"

#include <cerrno>
#include <memory>

namespace weft::agent {

void ConsumerRequests::OpenFile(ConsumerLink& link, const ipc::FileRequest& request) {
  auto file = output_ ? output_->OpenFile(request.name)
                      : Result<UniqueFd>(Fail(ErrorCode::kNotFound, "no output folder"));
  int error = 0;
  UniqueFd fd;
  if (file) {
    fd = std::move(*file);
  } else {
    error = file.error().sys_errno != 0 ? file.error().sys_errno : EINVAL;
    note_(request.name + ": " + file.error().message);
  }
  // The descriptor is here already: no later than now is there one more of it.
  auto held = std::make_shared<UniqueFd>(std::move(fd));
  link.Tell([number = request.request, error, held]() -> ipc::Message {
    return ipc::FileAnswer{.request = number, .error = error, .fd = std::move(*held)};
  });
}

void ConsumerRequests::Connect(const ConsumerLink& link, const ipc::ConnectionRequest& request) {
  const auto answer = [this, consumer = link.name(), asked_on = link.connections(),
                       number = request.request,
                       channel_id = request.channel_id](Result<UniqueFd> socket) {
    NoteRelay(consumer, channel_id, socket ? "" : socket.error().message);
    const ConsumerLink* now = consumers_.Find(consumer);
    // Another consumer's requests have the same numbers.
    if (now == nullptr || asked_on != now->connections()) return;
    auto held = std::make_shared<Result<UniqueFd>>(std::move(socket));
    consumers_.Tell(consumer, [number, held]() -> ipc::Message {
      if (!*held) return ipc::ConnectionAnswer{.request = number, .error = held->error().message};
      return ipc::ConnectionAnswer{.request = number, .error = "", .fd = std::move(**held)};
    });
  };
  const Session* session = sessions_.SessionOf(link.name(), request.channel_id);
  if (session == nullptr || session->relay.host.empty())
    return answer(Fail(ErrorCode::kNotFound, "the channel has no relay"));
  const ipc::RelayAddress& relay = session->relay;
  dialer_.Dial(relay.host, request.data ? relay.data_port : relay.control_port, answer);
}

void ConsumerRequests::NoteRelay(const std::string& consumer, uint64_t channel_id,
                                 const std::string& failure) {
  Session* session = sessions_.SessionOf(consumer, channel_id);
  if (session == nullptr || session->relay_failure == failure) return;
  session->relay_failure = failure;
  changed_(*session);
}

}  // namespace weft::agent
