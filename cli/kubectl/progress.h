// SPDX-License-Identifier: Apache-2.0
// A line of progress on a terminal: how many bytes of how many, with a bar and the speed. Nothing
// where standard error is no terminal. Thread-safety: one thread per object.
#ifndef WEFT_CLI_KUBECTL_PROGRESS_H_
#define WEFT_CLI_KUBECTL_PROGRESS_H_

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
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
  ~Progress() { Clear(); }

  // Takes the line away, so that something else can be written there.
  void Clear() {
    if (shows_ && drawn_ != Clock::time_point()) std::fputs("\r\033[K", stderr);
    drawn_ = Clock::time_point();
  }

  void Add(std::uint64_t bytes) {
    done_ += bytes;
    const auto now = Clock::now();
    if (!shows_ || now - drawn_ < kBetween) return;
    drawn_ = now;
    const auto ms = std::chrono::duration_cast<std::chrono::milliseconds>(now - start_).count() + 1;
    winsize size{};
    const bool known = ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0;
    std::fprintf(stderr, "\r\033[K%s",
                 Line(static_cast<std::uint64_t>(ms), known ? size.ws_col : 80).c_str());
  }

  // The line, `ms` after the start, for a terminal of so many columns: a longer one would be drawn
  // below the one before.
  [[nodiscard]] std::string Line(std::uint64_t ms, std::size_t columns) const {
    const double part = total_ == 0 ? 1 : static_cast<double>(done_) / static_cast<double>(total_);
    const std::string percent = std::to_string(std::lround(part * 100));
    std::string line = std::string(3 - std::min<std::size_t>(percent.size(), 3), ' ') + percent +
                       " %  " + Bytes(done_) + " of " + Bytes(total_) + ", " +
                       Bytes(done_ * 1000 / ms) + "/s";
    if (columns > kWidth + 3 + kMostText) {
      const auto filled = std::min(static_cast<std::size_t>(part * kWidth), kWidth);
      line.insert(0, "[" + std::string(filled, '=') + std::string(kWidth - filled, ' ') + "] ");
    }
    return line.substr(0, columns - 1);
  }

  [[nodiscard]] std::uint64_t done() const { return done_; }

 private:
  using Clock = std::chrono::steady_clock;
  static constexpr std::chrono::milliseconds kBetween{100};
  static constexpr std::size_t kWidth = 30;     // of the bar
  static constexpr std::size_t kMostText = 45;  // beside it

  const std::uint64_t total_;
  const bool shows_;
  const Clock::time_point start_;
  Clock::time_point drawn_;
  std::uint64_t done_ = 0;
};

}  // namespace weft::kubectl

#endif  // WEFT_CLI_KUBECTL_PROGRESS_H_
