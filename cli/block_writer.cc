// SPDX-License-Identifier: Apache-2.0
// See block_writer.h.
#include "cli/block_writer.h"

#include <cerrno>

namespace weft::cli {

BlockWriter::~BlockWriter() {
  if (!thread_.joinable()) return;
  {
    const std::lock_guard lock(mutex_);
    is_over_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

bool BlockWriter::Write(std::string& block) {
  if (block.empty()) return Result();
  if (!thread_.joinable()) thread_ = std::thread([this] { Run(); });
  {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return waiting_.empty() || error_ != 0; });
    if (error_ == 0) waiting_.swap(block);
  }
  changed_.notify_all();
  block.clear();
  return Result();
}

bool BlockWriter::Flush() {
  {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return (waiting_.empty() && !is_writing_) || error_ != 0; });
  }
  return Result() && std::fflush(out_) == 0;
}

bool BlockWriter::Result() {
  const std::lock_guard lock(mutex_);
  errno = error_;
  return error_ == 0;
}

void BlockWriter::Run() {
  std::string block;
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [this] { return !waiting_.empty() || is_over_; });
    if (is_over_) return;
    block.clear();
    block.swap(waiting_);
    is_writing_ = true;
    lock.unlock();
    changed_.notify_all();  // there is room for the next block
    const bool ok = std::fwrite(block.data(), 1, block.size(), out_) == block.size();
    const int error = ok ? 0 : errno;
    lock.lock();
    is_writing_ = false;
    if (error_ == 0) error_ = error;
    changed_.notify_all();
    if (!ok) return;
  }
}

}  // namespace weft::cli
