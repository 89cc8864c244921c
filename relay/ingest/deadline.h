// SPDX-License-Identifier: Apache-2.0
// A deadline for an operation of Asio. After Lift, or after the destructor, `late` is never
// called.
//
// Asio's cancel() alone does not guarantee this. It reaches only timers that have not expired. The
// handler of an expired timer may be queued already, behind the handler that calls cancel(), and
// then runs without an error. The handler therefore looks at a state of its own, which outlives
// the Deadline.
//
// Thread-safety: everything on the one thread that runs the executor. Header only, for files that
// include Asio anyway.
#ifndef WEFT_RELAY_INGEST_DEADLINE_H_
#define WEFT_RELAY_INGEST_DEADLINE_H_

#include <asio/any_io_executor.hpp>
#include <asio/steady_timer.hpp>
#include <chrono>
#include <functional>
#include <memory>
#include <system_error>
#include <utility>

namespace weft::ingest {

class Deadline {
 public:
  // Calls `late` once, from the executor, when `limit` is over. `late` may destroy the Deadline.
  Deadline(const asio::any_io_executor& executor, std::chrono::nanoseconds limit,
           std::function<void()> late)
      : late_(std::make_shared<std::function<void()>>(std::move(late))), timer_(executor) {
    timer_.expires_after(limit);
    timer_.async_wait([late = std::weak_ptr(late_)](std::error_code error) {
      const std::shared_ptr<std::function<void()>> call = late.lock();
      if (!error && call != nullptr) (*call)();
    });
  }
  Deadline(const Deadline&) = delete;
  Deadline& operator=(const Deadline&) = delete;
  ~Deadline() = default;

  // What had to be done was done in time.
  void Lift() {
    late_.reset();
    timer_.cancel();
  }

 private:
  std::shared_ptr<std::function<void()>> late_;  // null: lifted
  asio::steady_timer timer_;
};

}  // namespace weft::ingest

#endif  // WEFT_RELAY_INGEST_DEADLINE_H_
