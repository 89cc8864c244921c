// SPDX-License-Identifier: Apache-2.0
// The event loop of keeper, agent and cli: one thread, epoll, handlers for descriptors,
// connections and timers. A handler may add and remove any of them, itself too. Times are
// CLOCK_MONOTONIC, so that a machine's sleep is not taken for a peer's silence.
#ifndef WEFT_LIB_IPC_LOOP_H_
#define WEFT_LIB_IPC_LOOP_H_

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>

#include "lib/base/result.h"
#include "lib/base/unique_fd.h"
#include "lib/ipc/connection.h"

namespace weft::ipc {

class Loop {
 public:
  using Clock = std::chrono::steady_clock;
  // Gets a message, or the error after which the connection is of no use: the handler then
  // unwatches it.
  using MessageHandler = std::function<void(Result<Message>)>;

  static Result<Loop> Make();

  // Calls `handler` while `fd` is readable or hung up. The caller owns fd and unwatches it first.
  Status Watch(int fd, std::function<void()> handler);
  // Receives, and sends what the connection has queued. The connection's address must not change
  // until it is unwatched.
  Status WatchConnection(Connection& connection, MessageHandler handler);
  void Unwatch(int fd);

  using TimerId = uint64_t;
  TimerId Every(std::chrono::milliseconds interval, std::function<void()> handler);
  TimerId After(std::chrono::milliseconds delay, std::function<void()> handler);
  void Cancel(TimerId timer);

  // Sets a function that is called before every wait, for work that the handlers left behind
  // (queues that have room again).
  void AfterEachRound(std::function<void()> handler) { after_round_ = std::move(handler); }

  // Runs handlers until Stop.
  Status Run();
  void Stop() { stopped_ = true; }

 private:
  struct Entry {
    std::function<void()> handler;
    Connection* connection = nullptr;
    MessageHandler message_handler;
    bool wants_write = false;
    bool removed = false;
  };
  struct Timer {
    Clock::time_point due;
    std::chrono::milliseconds interval{0};
    std::function<void()> handler;
  };

  explicit Loop(UniqueFd epoll) : epoll_(std::move(epoll)) {}
  Status Add(int fd, std::shared_ptr<Entry> entry);
  void UpdateInterest();
  void Dispatch(const std::shared_ptr<Entry>& entry, uint32_t events);
  void ReceiveAll(const std::shared_ptr<Entry>& entry);
  void RunTimers();
  void Breathe();
  [[nodiscard]] int TimeoutMs() const;

  UniqueFd epoll_;
  std::map<int, std::shared_ptr<Entry>> entries_;
  std::map<TimerId, Timer> timers_;
  TimerId next_timer_ = 1;
  std::function<void()> after_round_;
  bool stopped_ = false;
  Clock::time_point breathed_;
  int rounds_left_ = 0;
};

// For a process that serves others: when it wakes, it no longer takes the CPU from a running
// process, but waits for its turn (SCHED_BATCH; not for children that StartChild starts). It may
// fail silently.
void TakeTurns();

}  // namespace weft::ipc

#endif  // WEFT_LIB_IPC_LOOP_H_
