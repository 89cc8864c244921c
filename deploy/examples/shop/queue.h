// SPDX-License-Identifier: Apache-2.0
// Hands orders from one counter of the shop to the next. Any thread may push or pop.
#ifndef WEFT_DEPLOY_EXAMPLES_SHOP_QUEUE_H_
#define WEFT_DEPLOY_EXAMPLES_SHOP_QUEUE_H_

#include <condition_variable>
#include <deque>
#include <mutex>
#include <optional>
#include <utility>

namespace shop {

template <typename T>
class Queue {
 public:
  // Waits while `kLimit` are queued: customers do not run ahead of the clerks for ever.
  void Push(T item) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return items_.size() < kLimit; });
    items_.push_back(std::move(item));
    changed_.notify_all();
  }

  // Waits for an item; nothing once the queue is closed and empty.
  std::optional<T> Pop() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return closed_ || !items_.empty(); });
    if (items_.empty()) return std::nullopt;
    T item = std::move(items_.front());
    items_.pop_front();
    changed_.notify_all();
    return item;
  }

  // Announces that no thread will push any more.
  void Close() {
    std::lock_guard lock(mutex_);
    closed_ = true;
    changed_.notify_all();
  }

 private:
  static constexpr std::size_t kLimit = 1024;

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<T> items_;
  bool closed_ = false;
};

}  // namespace shop

#endif  // WEFT_DEPLOY_EXAMPLES_SHOP_QUEUE_H_
