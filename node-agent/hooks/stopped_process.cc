// SPDX-License-Identifier: Apache-2.0
// See stopped_process.h. ptrace(2).
#include "node-agent/hooks/stopped_process.h"

#include <dirent.h>
#include <sys/ptrace.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cstring>
#include <fstream>
#include <string>
#include <thread>

#include "lib/abi/hooks.h"
#include "node-agent/hooks/limits.h"

namespace weft::hooks {
namespace {

using Clock = std::chrono::steady_clock;
constexpr std::chrono::microseconds kPoll{50};

// The letter of proc(5); '?': it is gone.
char StateOf(int32_t pid, int32_t tid) {
  std::ifstream in("/proc/" + std::to_string(pid) + "/task/" + std::to_string(tid) + "/stat");
  std::string text;
  std::getline(in, text);
  const size_t end = text.rfind(')');
  return end == std::string::npos || end + 2 >= text.size() ? '?' : text[end + 2];
}

bool HasEnded(int32_t pid, int32_t tid) {
  const char state = StateOf(pid, tid);
  return state == 'Z' || state == 'X' || state == '?';
}

// Does a signal that is not blocked wait for the thread? True also if that cannot be seen.
bool IsSignalled(int32_t pid, int32_t tid) {
  std::ifstream in("/proc/" + std::to_string(pid) + "/task/" + std::to_string(tid) + "/status");
  uint64_t pending = 0, blocked = 0;
  int seen = 0;
  for (std::string line; std::getline(in, line);) {
    uint64_t* to = line.starts_with("SigPnd:") || line.starts_with("ShdPnd:") ? &pending
                   : line.starts_with("SigBlk:")                              ? &blocked
                                                                              : nullptr;
    if (to == nullptr) continue;
    const size_t at = line.find_first_of("0123456789abcdef", 7);
    uint64_t value = 0;
    if (at == std::string::npos) return true;
    std::from_chars(line.data() + at, line.data() + line.size(), value, 16);
    *to |= value;
    ++seen;
  }
  return seen != 3 || (pending & ~blocked) != 0;
}

}  // namespace

std::vector<int32_t> ThreadsOf(int32_t pid) {
  std::vector<int32_t> threads;
  DIR* dir = opendir(("/proc/" + std::to_string(pid) + "/task").c_str());
  if (dir == nullptr) return threads;
  while (const dirent* entry = readdir(dir)) {
    int32_t tid = 0;
    const char* end = entry->d_name + std::strlen(entry->d_name);
    if (std::from_chars(entry->d_name, end, tid).ptr == end && tid > 0) threads.push_back(tid);
  }
  closedir(dir);
  return threads;
}

Result<StoppedProcess> StoppedProcess::Stop(int32_t pid) {
  StoppedProcess stopped;
  // A thread that is not stopped yet may start another one meanwhile.
  for (size_t before = SIZE_MAX; before != stopped.threads_.size();) {
    before = stopped.threads_.size();
    WEFT_TRY(stopped.StopNew(pid));
  }
  if (stopped.threads_.empty())
    return Fail(ErrorCode::kNotFound, "process " + std::to_string(pid) + " has ended");
  return stopped;
}

Status StoppedProcess::StopNew(int32_t pid) {
  std::vector<int32_t> fresh;
  for (const int32_t tid : ThreadsOf(pid)) {
    if (threads_.contains(tid)) continue;
    if (ptrace(PTRACE_SEIZE, tid, nullptr, nullptr) != 0) {
      if (errno == ESRCH || HasEnded(pid, tid)) continue;
      return Fail(ErrorCode::kPermission,
                  "process " + std::to_string(pid) + " cannot be stopped (" + std::strerror(errno) +
                      "): it is traced by another program, or the kernel forbids it");
    }
    threads_[tid];
    fresh.push_back(tid);
    (void)ptrace(PTRACE_INTERRUPT, tid, nullptr, nullptr);
  }
  for (const int32_t tid : fresh) {
    WEFT_TRY(Wait(tid));
    if (threads_.contains(tid) && threads_[tid].signal == 0) SetBack(tid, pid);
  }
  return {};
}

Status StoppedProcess::Wait(int32_t tid) {
  const auto end = Clock::now() + kStopPatience;
  for (;;) {
    int status = 0;
    const pid_t got = waitpid(tid, &status, __WALL | WNOHANG);
    if (got == tid && WIFSTOPPED(status)) {
      // A stop by PTRACE_INTERRUPT, or of the whole process, has an event; a signal has none.
      if (status >> 16 == 0) threads_[tid].signal = WSTOPSIG(status);
      return {};
    }
    if (got == tid || (got < 0 && errno != EINTR)) {
      threads_.erase(tid);  // it ended
      return {};
    }
    if (Clock::now() >= end)
      return Fail(ErrorCode::kTimeout, "thread " + std::to_string(tid) + " does not stop");
    std::this_thread::sleep_for(kPoll);
  }
}

// Sets a thread whose system call was given up because of the stop back to that call.
void StoppedProcess::SetBack(int32_t tid, int32_t pid) {
  user_regs_struct r{};
  if (ptrace(PTRACE_GETREGS, tid, nullptr, &r) != 0) return;
  if (static_cast<int64_t>(r.orig_rax) < 0 || static_cast<int64_t>(r.rax) != -EINTR) return;
  if (IsSignalled(pid, tid)) return;
  errno = 0;
  const long word = ptrace(PTRACE_PEEKTEXT, tid, r.rip - 2, nullptr);
  if (errno != 0 || (word & 0xffff) != 0x050f) return;
  r.rax = r.orig_rax;
  r.rip -= 2;
  r.orig_rax = UINT64_MAX;  // it is in no call
  (void)ptrace(PTRACE_SETREGS, tid, nullptr, &r);
}

// A thread that did not stop cannot be detached here: the kernel does it when this thread ends.
StoppedProcess::~StoppedProcess() {
  for (const auto& [tid, thread] : threads_)
    (void)ptrace(PTRACE_DETACH, tid, nullptr, reinterpret_cast<void*>(intptr_t{thread.signal}));
}

bool StoppedProcess::IsInside(const std::vector<uint64_t>& entries,
                              const ProcessMemory& memory) const {
  const auto is_inside = [&entries](uint64_t address) {
    const auto after = std::ranges::lower_bound(entries, address);
    return after != entries.begin() && address - *(after - 1) < WEFT_HOOK_JUMP_BYTES;
  };
  std::vector<uint64_t> stack(kStackBytes / sizeof(uint64_t));
  for (const auto& [tid, thread] : threads_) {
    user_regs_struct r{};
    if (ptrace(PTRACE_GETREGS, tid, nullptr, &r) != 0 || is_inside(r.rip)) return true;
    // The stack may end sooner: page by page.
    for (size_t done = 0; done < kStackBytes;) {
      const uint64_t at = (r.rsp & ~uint64_t{7}) + done;
      const size_t bytes = std::min<size_t>(4096 - at % 4096, kStackBytes - done);
      if (!memory.Read(at, stack.data(), bytes)) break;
      for (size_t i = 0; i < bytes / sizeof(uint64_t); ++i)
        if (is_inside(stack[i])) return true;
      done += bytes;
    }
  }
  return false;
}

}  // namespace weft::hooks
