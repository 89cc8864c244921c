// SPDX-License-Identifier: Apache-2.0
// A line of progress on a terminal: how many bytes of how many, with a bar and the speed. Nothing
// where standard error is no terminal. Thread-safety: one thread per object.
#ifndef WEFT_CLI_KUBECTL_PROGRESS_H_
#define WEFT_CLI_KUBECTL_PROGRESS_H_

#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <string>

#include "cli/kubectl/trace_objects.h"

namespace weft::kubectl {

class Progress {
 public:
  Progress(std::uint64_t total, bool is_quiet)
      : total_(total), shows_(!is_quiet && isatty(STDERR_FILENO) == 1), start_(Clock::now()) {}
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;
  ~Progress() {
    if (shows_ && drawn_ != Clock::time_point()) std::fputs("\r\033[K", stderr);
  }

  void Add(std::uint64_t bytes) {
    done_ += bytes;
    const auto now = Clock::now();
    if (!shows_ || now - drawn_ < kBetween) return;
    drawn_ = now;
    const double part = total_ == 0 ? 1 : static_cast<double>(done_) / static_cast<double>(total_);
    const auto filled = static_cast<std::size_t>(part * kWidth);
    const auto ms = std::chrono::duration_cast<std::chrono::milliseconds>(now - start_).count() + 1;
    std::fprintf(stderr, "\r\033[K[%s%s] %3.0f %%  %s of %s, %s/s",
                 std::string(filled, '=').c_str(), std::string(kWidth - filled, ' ').c_str(),
                 part * 100, Bytes(done_).c_str(), Bytes(total_).c_str(),
                 Bytes(done_ * 1000 / static_cast<std::uint64_t>(ms)).c_str());
  }

  [[nodiscard]] std::uint64_t done() const { return done_; }

 private:
  using Clock = std::chrono::steady_clock;
  static constexpr std::chrono::milliseconds kBetween{100};
  static constexpr std::size_t kWidth = 30;

  const std::uint64_t total_;
  const bool shows_;
  const Clock::time_point start_;
  Clock::time_point drawn_;
  std::uint64_t done_ = 0;
};

}  // namespace weft::kubectl

#endif  // WEFT_CLI_KUBECTL_PROGRESS_H_
