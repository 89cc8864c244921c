// SPDX-License-Identifier: Apache-2.0
// A thread that waits for the disk while the consumer's thread reads rings. It runs jobs one after
// the other, in the order in which they were started. Thread-safety: all calls come from one
// thread.
#ifndef WEFT_NODE_AGENT_CONSUMER_BACKGROUND_WRITER_H_
#define WEFT_NODE_AGENT_CONSUMER_BACKGROUND_WRITER_H_

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>

#include "lib/base/result.h"

namespace weft::consumer {

class BackgroundWriter {
 public:
  // Returns when `enter` was run in the new thread, before any job: what that thread's sandbox
  // needs. Its error is the result.
  static Result<std::unique_ptr<BackgroundWriter>> Make(const std::function<Status()>& enter);
  BackgroundWriter(const BackgroundWriter&) = delete;
  BackgroundWriter& operator=(const BackgroundWriter&) = delete;
  // Waits for all jobs.
  ~BackgroundWriter();

  using Job = std::function<void()>;
  // Queues a job and returns its number, for the functions below.
  uint64_t Start(Job job);
  [[nodiscard]] bool Done(uint64_t number);
  void Wait(uint64_t number);

 private:
  BackgroundWriter() = default;
  void Run();

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Job> jobs_;
  uint64_t started_ = 0;
  uint64_t done_ = 0;
  bool ending_ = false;
  std::thread thread_;
};

}  // namespace weft::consumer

#endif  // WEFT_NODE_AGENT_CONSUMER_BACKGROUND_WRITER_H_
