// SPDX-License-Identifier: Apache-2.0
// See agent_link.h.
#include "node-agent/consumer/agent_link.h"

#include <ctime>

#include <algorithm>
#include <cstdio>

#include "lib/ipc/limits.h"
#include "node-agent/consumer/limits.h"

namespace weft::consumer {
namespace {

short Interest(const ipc::Connection& connection) {
  return static_cast<short>(POLLIN | (connection.wants_write() ? POLLOUT : 0));
}

}  // namespace

uint64_t AgentLink::NowNs() {
  timespec now{};
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<uint64_t>(now.tv_sec) * 1'000'000'000 + static_cast<uint64_t>(now.tv_nsec);
}

void AgentLink::Beat() {
  constexpr uint64_t kInterval =
      std::chrono::duration_cast<std::chrono::nanoseconds>(ipc::kHeartbeatInterval).count();
  const uint64_t now = NowNs();
  if (beat_ns_ != 0 && now - beat_ns_ < kInterval) return;
  beat_ns_ = now;
  (void)keeper_.Send(ipc::Heartbeat{done_, pending_});
}

void AgentLink::ReceiveFromKeeper() {
  for (;;) {
    auto received = keeper_.Receive();
    if (!received) {
      exiting_ = true;
      return;
    }
    if (!*received) return;
    ipc::Message& message = **received;
    if (std::holds_alternative<ipc::Exit>(message)) exiting_ = true;
    if (auto* connect = std::get_if<ipc::Connect>(&message)) {
      // Drops what the old agent said: the new one says all it knows.
      queue_.clear();
      agent_ = ipc::Connection(std::move(connect->fd));
      connection_++;
      (void)agent_.Send(ipc::Hello{});
    }
  }
}

// A message that could not be taken whole (too many open files) will not be sent again, and no
// other connection follows while both processes live. A consumer that is started again gets all
// messages.
void AgentLink::EndAgent(const Error& error) {
  agent_.Close();
  if (error.code == ErrorCode::kClosed) return;
  std::fprintf(stderr, "weft-consumer: %s\n", error.message.c_str());
  exiting_ = true;
}

void AgentLink::ReceiveFromAgent() {
  while (agent_.valid() && queue_.size() < kMaxQueuedFromAgent) {
    auto received = agent_.Receive();
    if (!received) return EndAgent(received.error());
    if (!*received) return;
    queue_.push_back(std::move(**received));
  }
}

void AgentLink::Wait(uint64_t nanoseconds, std::vector<pollfd> others) {
  Beat();
  if (!queue_.empty()) nanoseconds = 0;
  const bool full = queue_.size() >= kMaxQueuedFromAgent;
  std::vector<pollfd>& fds = others;
  fds.insert(fds.begin(), {{keeper_.fd(), Interest(keeper_), 0}, {-1, 0, 0}});
  if (agent_.valid() && !full) fds[1] = {agent_.fd(), Interest(agent_), 0};
  const timespec timeout{static_cast<time_t>(nanoseconds / 1'000'000'000),
                         static_cast<long>(nanoseconds % 1'000'000'000)};
  if (::ppoll(fds.data(), fds.size(), &timeout, nullptr) <= 0) return;
  if ((fds[0].revents & POLLOUT) != 0) (void)keeper_.Flush();
  if ((fds[1].revents & POLLOUT) != 0) (void)agent_.Flush();
  // The agent's last words come before its successor's first.
  if (fds[1].revents != 0) ReceiveFromAgent();
  if (fds[0].revents != 0) ReceiveFromKeeper();
}

std::optional<ipc::Message> AgentLink::next() {
  if (queue_.empty()) return std::nullopt;
  ipc::Message message = std::move(queue_.front());
  queue_.pop_front();
  return message;
}

std::optional<ipc::FileAnswer> AgentLink::WaitForFile(uint64_t request) {
  const auto look = [&]() -> std::optional<ipc::FileAnswer> {
    for (auto at = queue_.begin(); at != queue_.end(); ++at) {
      auto* answer = std::get_if<ipc::FileAnswer>(&*at);
      if (answer == nullptr || answer->request != request) continue;
      ipc::FileAnswer found = std::move(*answer);
      queue_.erase(at);
      return found;
    }
    return std::nullopt;
  };
  if (auto found = look()) return found;
  // This does not call Wait, which does not wait while other messages are queued, and takes none
  // when there are many.
  Beat();
  pollfd fds[2] = {{keeper_.fd(), Interest(keeper_), 0}, {-1, 0, 0}};
  if (agent_.valid()) fds[1] = {agent_.fd(), Interest(agent_), 0};
  if (::poll(fds, 2, 100) <= 0) return std::nullopt;
  if ((fds[1].revents & POLLOUT) != 0) (void)agent_.Flush();
  if (fds[1].revents != 0) {
    auto received = agent_.Receive();
    if (!received) EndAgent(received.error());
    if (received && *received) queue_.push_back(std::move(**received));
  }
  if (fds[0].revents != 0) ReceiveFromKeeper();
  return look();
}

Status AgentLink::Send(ipc::Message message) { return agent_.Send(std::move(message)); }

}  // namespace weft::consumer
