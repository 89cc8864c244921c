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
  const Asked asked{.consumer = link.name(),
                    .connection = link.connection_number(),
                    .request = request.request,
                    .channel_id = request.channel_id};
  const Session* session = sessions_.SessionOf(link.name(), request.channel_id);
  if (session == nullptr || session->relay.host.empty())
    return Answer(asked, Fail(ErrorCode::kNotFound, "the channel has no relay"));
  const ipc::RelayAddress relay = session->relay;
  if (access_ == nullptr) return Dial(asked, relay, request.data, {});
  const auto dial = [this, asked, relay, data = request.data](const Result<RelayPass>& pass) {
    if (!pass) return Answer(asked, std::unexpected(pass.error()));
    Dial(asked, relay, data, *pass);
  };
  if (!request.data) {
    // A consumer has the name of its namespace.
    return access_->GetPass(relay.host, link.name(), request.was_refused, dial);
  }
  const auto authorities = access_->authorities();
  if (!authorities) return Answer(asked, std::unexpected(authorities.error()));
  dial(RelayPass{*authorities, ""});
}

void ConsumerRequests::Dial(const Asked& asked, const ipc::RelayAddress& relay, bool data,
                            const RelayPass& pass) {
  const std::string server_name = pass.authorities.empty() ? "" : relay.host;
  dialer_.Dial(relay.host, data ? relay.data_port : relay.control_port,
               [this, asked, pass, server_name](Result<UniqueFd> socket) {
                 if (!socket) return Answer(asked, std::unexpected(socket.error()));
                 Answer(asked, ipc::ConnectionAnswer{.request = asked.request,
                                                     .error = "",
                                                     .fd = std::move(*socket),
                                                     .authorities = pass.authorities,
                                                     .server_name = server_name,
                                                     .ticket = pass.ticket});
               });
}

void ConsumerRequests::Answer(const Asked& asked, Result<ipc::ConnectionAnswer> answer) {
  NoteRelay(asked.consumer, asked.channel_id, answer ? "" : answer.error().message);
  const ConsumerLink* now = consumers_.Find(asked.consumer);
  // Requests of another connection have the same numbers, also where it is another consumer's of
  // this name.
  if (now == nullptr || asked.connection != now->connection_number()) return;
  auto held = std::make_shared<ipc::ConnectionAnswer>(
      answer ? std::move(*answer)
             : ipc::ConnectionAnswer{.request = asked.request,
                                     .error = answer.error().message,
                                     .late = answer.error().sys_errno == ETIMEDOUT});
  consumers_.Tell(asked.consumer, [held]() -> ipc::Message { return std::move(*held); });
}

void ConsumerRequests::NoteRefusal(const ConsumerLink& link, const ipc::RelayRefusal& refusal) {
  Session* session = sessions_.SessionOf(link.name(), refusal.channel_id);
  if (session == nullptr || session->relay_refusal == refusal.reason) return;
  session->relay_refusal = refusal.reason;
  changed_(*session);
}

void ConsumerRequests::NoteRelay(const std::string& consumer, uint64_t channel_id,
                                 const std::string& failure) {
  Session* session = sessions_.SessionOf(consumer, channel_id);
  if (session == nullptr || session->relay_failure == failure) return;
  session->relay_failure = failure;
  changed_(*session);
}

}  // namespace weft::agent
