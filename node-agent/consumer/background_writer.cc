// SPDX-License-Identifier: Apache-2.0
// See background_writer.h.
#include "node-agent/consumer/background_writer.h"

#include <utility>

namespace weft::consumer {

Result<std::unique_ptr<BackgroundWriter>> BackgroundWriter::Make(
    const std::function<Status()>& enter) {
  std::unique_ptr<BackgroundWriter> writer(new BackgroundWriter);
  Status entered;
  bool ready = false;
  writer->thread_ = std::thread([self = writer.get(), &enter, &entered, &ready] {
    Status status = enter();
    {
      const std::lock_guard lock(self->mutex_);
      entered = std::move(status);
      ready = true;
      self->changed_.notify_all();
    }
    self->Run();
  });
  {
    std::unique_lock lock(writer->mutex_);
    writer->changed_.wait(lock, [&ready] { return ready; });
  }
  WEFT_TRY(std::move(entered));
  return writer;
}

BackgroundWriter::~BackgroundWriter() {
  {
    const std::lock_guard lock(mutex_);
    ending_ = true;
    changed_.notify_all();
  }
  thread_.join();
}

void BackgroundWriter::Run() {
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [this] { return ending_ || !jobs_.empty(); });
    if (jobs_.empty()) return;
    const Job job = std::move(jobs_.front());
    jobs_.pop_front();
    lock.unlock();
    job();
    lock.lock();
    done_++;
    changed_.notify_all();
  }
}

uint64_t BackgroundWriter::Start(Job job) {
  const std::lock_guard lock(mutex_);
  jobs_.push_back(std::move(job));
  changed_.notify_all();
  return ++started_;
}

bool BackgroundWriter::Done(uint64_t number) {
  const std::lock_guard lock(mutex_);
  return done_ >= number;
}

void BackgroundWriter::Wait(uint64_t number) {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this, number] { return done_ >= number; });
}

}  // namespace weft::consumer
