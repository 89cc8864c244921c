// SPDX-License-Identifier: Apache-2.0
// See attached.h.
#include "cli/attached.h"

#include <poll.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <string_view>

#include "lib/base/pidfd.h"
#include "lib/base/signal_fd.h"
#include "lib/event/text.h"

namespace weft::cli {
namespace {

std::string NameOf(int32_t pid) {
  std::ifstream in("/proc/" + std::to_string(pid) + "/comm");
  std::string name;
  std::getline(in, name);
  return name;
}

// A process chooses its name, which is shown on terminals.
std::string ShownName(int32_t pid) {
  std::string name = NameOf(pid);
  return IsPrintableUtf8(name) ? name : "process " + std::to_string(pid);
}

std::string WhyNoProcess(int32_t pid) {
  const std::string number = std::to_string(pid);
  std::string why = "there is no process " + number + "; ps -e shows all";
  constexpr std::string_view kProcess = "Tgid:\t";
  std::ifstream in("/proc/" + number + "/status");
  for (std::string line; std::getline(in, line);) {
    if (!line.starts_with(kProcess)) continue;
    const std::string process = line.substr(kProcess.size());
    if (process != number) {
      why = number;
      why.append(" is a thread of process ").append(process).append("; use --pid ").append(process);
    }
    break;
  }
  return why;
}

}  // namespace

std::vector<int32_t> ProcessesCalled(const std::string& name) {
  std::vector<int32_t> pids;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator("/proc", error)) {
    const std::string number = entry.path().filename();
    int32_t pid = 0;
    const auto [end, bad] = std::from_chars(number.data(), number.data() + number.size(), pid);
    if (bad != std::errc() || end != number.data() + number.size() || pid == getpid()) continue;
    const auto program = std::filesystem::read_symlink(entry.path() / "exe", error);
    // The file of a program that was installed again meanwhile has this in its name.
    const bool is_file =
        !error && (program.filename() == name || program.filename() == name + " (deleted)");
    if (is_file || NameOf(pid) == name) pids.push_back(pid);
  }
  std::ranges::sort(pids);
  return pids;
}

bool Attached::Add(int32_t pid) {
  if (std::ranges::find(pids_, pid) != pids_.end()) return true;
  UniqueFd pidfd = OpenPidfd(pid);
  if (!pidfd) return false;
  pids_.push_back(pid);
  pidfds_.push_back(std::move(pidfd));
  names_ += (names_.empty() ? "" : ", ") + ShownName(pid);
  return true;
}

Result<Attached> Attached::Prepare(const std::vector<int32_t>& given,
                                   const std::vector<int32_t>& named) {
  Attached attached;
  for (const int32_t pid : given)
    if (!attached.Add(pid)) return Fail(ErrorCode::kNotFound, WhyNoProcess(pid));
  for (const int32_t pid : named) attached.Add(pid);
  if (attached.pids_.empty())
    return Fail(ErrorCode::kNotFound, "all processes with this name have ended: try again");
  sigset_t held;
  sigemptyset(&held);
  for (const int signal : {SIGHUP, SIGINT, SIGQUIT, SIGTERM}) sigaddset(&held, signal);
  WEFT_ASSIGN(attached.signals_, HoldSignals(held));
  return attached;
}

void Attached::AddCalled(const std::vector<std::string>& names) {
  for (const std::string& name : names)
    for (const int32_t pid : ProcessesCalled(name)) Add(pid);
}

bool Attached::Wait(std::chrono::milliseconds timeout) {
  std::vector<pollfd> polled{{signals_.get(), POLLIN, 0}};
  for (const UniqueFd& pidfd : pidfds_) polled.push_back({pidfd.get(), POLLIN, 0});
  (void)poll(polled.data(), polled.size(), static_cast<int>(timeout.count()));
  for (size_t i = pidfds_.size(); i > 0; --i)
    if (polled[i].revents != 0) pidfds_.erase(pidfds_.begin() + static_cast<ptrdiff_t>(i - 1));
  return pidfds_.empty() || Interrupted();
}

bool Attached::Interrupted() {
  bool interrupted = false;
  signalfd_siginfo info;
  while (read(signals_.get(), &info, sizeof(info)) == ssize_t{sizeof(info)}) interrupted = true;
  return interrupted;
}

}  // namespace weft::cli
