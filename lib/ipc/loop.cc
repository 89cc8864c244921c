// SPDX-License-Identifier: Apache-2.0
// epoll, level-triggered. An entry that is removed while its events are being handled is only
// marked, since its handler may be running.
#include "lib/ipc/loop.h"

#include <sched.h>
#include <sys/epoll.h>

#include <algorithm>
#include <array>
#include <thread>

namespace weft::ipc {
namespace {

// Handled per round; what is left comes with the next one.
constexpr int kEventsPerRound = 64;
// Messages of one connection per round, so that a busy peer does not keep the others waiting.
constexpr int kMessagesPerRound = 64;
// Rounds that may follow each other at once; one more is earned in each kBreath. A loop that has
// used them up sleeps that long between rounds: a storm of callers (a program that forks without
// end) then wakes it, and takes a CPU from the callers, once per kBreath and not once for each of
// them.
constexpr int kRoundsAtOnce = 64;
constexpr std::chrono::microseconds kBreath{2000};

}  // namespace

Result<Loop> Loop::Make() {
  UniqueFd epoll(epoll_create1(EPOLL_CLOEXEC));
  if (!epoll) return FailErrno("epoll_create1");
  return Loop(std::move(epoll));
}

Status Loop::Add(int fd, std::shared_ptr<Entry> entry) {
  epoll_event event{};
  event.events = EPOLLIN;
  event.data.fd = fd;
  if (epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, fd, &event) != 0) return FailErrno("epoll_ctl");
  entries_[fd] = std::move(entry);
  return {};
}

Status Loop::Watch(int fd, std::function<void()> handler) {
  auto entry = std::make_shared<Entry>();
  entry->handler = std::move(handler);
  return Add(fd, std::move(entry));
}

Status Loop::WatchConnection(Connection& connection, MessageHandler handler) {
  auto entry = std::make_shared<Entry>();
  entry->connection = &connection;
  entry->message_handler = std::move(handler);
  return Add(connection.fd(), std::move(entry));
}

void Loop::Unwatch(int fd) {
  auto it = entries_.find(fd);
  if (it == entries_.end()) return;
  epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, fd, nullptr);
  it->second->removed = true;
  entries_.erase(it);
}

Loop::TimerId Loop::Every(std::chrono::milliseconds interval, std::function<void()> handler) {
  timers_[next_timer_] = Timer{Clock::now() + interval, interval, std::move(handler)};
  return next_timer_++;
}

Loop::TimerId Loop::After(std::chrono::milliseconds delay, std::function<void()> handler) {
  timers_[next_timer_] = Timer{Clock::now() + delay, {}, std::move(handler)};
  return next_timer_++;
}

void Loop::Cancel(TimerId timer) { timers_.erase(timer); }

void Loop::UpdateInterest() {
  for (auto& [fd, entry] : entries_) {
    if (entry->connection == nullptr || entry->wants_write == entry->connection->wants_write())
      continue;
    entry->wants_write = entry->connection->wants_write();
    epoll_event event{};
    event.events = EPOLLIN | (entry->wants_write ? EPOLLOUT : 0u);
    event.data.fd = fd;
    epoll_ctl(epoll_.get(), EPOLL_CTL_MOD, fd, &event);
  }
}

void Loop::ReceiveAll(const std::shared_ptr<Entry>& entry) {
  for (int i = 0; i < kMessagesPerRound && !entry->removed; ++i) {
    auto received = entry->connection->Receive();
    if (!received) {
      entry->message_handler(std::unexpected(std::move(received).error()));
      return;
    }
    if (!received->has_value()) return;
    entry->message_handler(std::move(**received));
  }
}

void Loop::Dispatch(const std::shared_ptr<Entry>& entry, uint32_t events) {
  if (entry->removed) return;
  if (entry->connection == nullptr) {
    entry->handler();
    return;
  }
  if ((events & EPOLLOUT) != 0) {
    // Receive reports a closed peer, after its last messages.
    (void)entry->connection->Flush();
  }
  if ((events & (EPOLLIN | EPOLLHUP | EPOLLERR)) != 0) ReceiveAll(entry);
}

void Loop::RunTimers() {
  const auto now = Clock::now();
  std::vector<TimerId> due;
  for (const auto& [id, timer] : timers_)
    if (timer.due <= now) due.push_back(id);
  for (const TimerId id : due) {
    auto it = timers_.find(id);
    if (it == timers_.end()) continue;
    const auto handler = it->second.handler;
    if (it->second.interval.count() == 0)
      timers_.erase(it);
    else
      it->second.due = now + it->second.interval;
    handler();
  }
}

int Loop::TimeoutMs() const {
  if (timers_.empty()) return -1;
  auto first = Clock::time_point::max();
  for (const auto& [id, timer] : timers_) first = std::min(first, timer.due);
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(first - Clock::now()).count();
  return static_cast<int>(std::clamp<int64_t>(left, 0, 3'600'000));
}

void Loop::Breathe() {
  const auto now = Clock::now();
  const auto earned = (now - breathed_) / kBreath;
  breathed_ += earned * kBreath;
  rounds_left_ = static_cast<int>(std::min<int64_t>(rounds_left_ + earned, kRoundsAtOnce));
  if (rounds_left_ > 0)
    --rounds_left_;
  else
    std::this_thread::sleep_until(breathed_ + kBreath);
}

Status Loop::Run() {
  while (!stopped_) {
    if (after_round_) after_round_();
    UpdateInterest();
    std::array<epoll_event, kEventsPerRound> events;
    const int n = epoll_wait(epoll_.get(), events.data(), kEventsPerRound, TimeoutMs());
    if (n < 0 && errno != EINTR) return FailErrno("epoll_wait");
    for (int i = 0; i < n && !stopped_; ++i) {
      // Looked up anew: an earlier handler of this round may have removed it.
      auto it = entries_.find(events[static_cast<size_t>(i)].data.fd);
      if (it == entries_.end()) continue;
      const std::shared_ptr<Entry> entry = it->second;
      Dispatch(entry, events[static_cast<size_t>(i)].events);
    }
    if (!stopped_) RunTimers();
    if (!stopped_) Breathe();
  }
  stopped_ = false;  // it may be run again
  return {};
}

void TakeTurns() {
  const sched_param priority{};
  (void)sched_setscheduler(0, SCHED_BATCH, &priority);
}

}  // namespace weft::ipc
