// SPDX-License-Identifier: Apache-2.0
// See stopped_process.h. ptrace(2).
#include "node-agent/hooks/stopped_process.h"

#include <sys/ptrace.h>
#include <sys/uio.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <fstream>
#include <string>
#include <thread>

#include "lib/abi/hooks.h"
#include "lib/base/processes.h"
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

// Does another thread of this process trace it?
bool IsOurs(int32_t pid, int32_t tid) {
  std::ifstream in("/proc/" + std::to_string(pid) + "/task/" + std::to_string(tid) + "/status");
  for (std::string line; std::getline(in, line);)
    if (line.starts_with("TracerPid:\t"))
      return access(("/proc/self/task/" + line.substr(11)).c_str(), F_OK) == 0;
  return false;
}

bool HasEnded(int32_t pid, int32_t tid) {
  const char state = StateOf(pid, tid);
  return state == 'Z' || state == 'X' || state == '?';
}

// Reads a stack from `begin` on, as far as it can be read, page by page. Unlike /proc/PID/mem, this
// call does not read beyond the stack, where a page without access lies. Returns the words read.
size_t ReadStack(int32_t pid, uint64_t begin, std::vector<uint64_t>& words) {
  iovec pages[kStackBytes / 4096 + 1];
  size_t count = 0;
  const uint64_t first = begin & ~uint64_t{7}, end = first + words.size() * sizeof(uint64_t);
  for (uint64_t at = first; at < end; at += pages[count++].iov_len)
    pages[count] = {reinterpret_cast<void*>(at), std::min<uint64_t>(4096 - at % 4096, end - at)};
  const iovec to{words.data(), words.size() * sizeof(uint64_t)};
  const ssize_t bytes = process_vm_readv(pid, &to, 1, pages, count, 0);
  return bytes <= 0 ? 0 : static_cast<size_t>(bytes) / sizeof(uint64_t);
}

// A part of a stack in use, and the instructions that signal handlers interrupted there.
struct Stack {
  uint64_t begin = 0;
  std::vector<uint64_t> words;
  std::vector<uint64_t> interrupted;
};

// Reads the stack of a thread, and those that signal handlers on other stacks interrupted. In a
// frame of a signal, rsp, rip, the flags and the segments follow each other.
std::vector<Stack> StacksOf(int32_t pid, const user_regs_struct& registers) {
  constexpr uint64_t kSegments = 0x002b000000000033, kWithoutStackSegment = 0x33;
  std::vector<Stack> stacks;
  std::vector<uint64_t> next{registers.rsp};
  while (!next.empty() && stacks.size() < kMaxStacks) {
    // A leaf function has values below its stack.
    uint64_t begin = (next.back() - kRedZoneBytes) & ~uint64_t{7};
    Stack stack{.begin = begin, .words = std::vector<uint64_t>(kStackBytes / sizeof(uint64_t))};
    size_t count = ReadStack(pid, begin, stack.words);
    if (count == 0) {  // it is used to the end of its memory
      stack.begin = begin = next.back() & ~uint64_t{7};
      count = ReadStack(pid, begin, stack.words);
    }
    next.pop_back();
    stack.words.resize(count);
    for (size_t i = 1; i + 2 < stack.words.size(); ++i) {
      if (stack.words[i + 2] != kSegments && stack.words[i + 2] != kWithoutStackSegment) continue;
      stack.interrupted.push_back(stack.words[i]);
      const uint64_t other = stack.words[i - 1];
      if (other - begin >= stack.words.size() * sizeof(uint64_t)) next.push_back(other);
    }
    stacks.push_back(std::move(stack));
  }
  return stacks;
}

}  // namespace

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

std::vector<int32_t> ThreadsOf(int32_t pid) {
  return IdsIn("/proc/" + std::to_string(pid) + "/task");
}

Result<StoppedProcess> StoppedProcess::Stop(int32_t pid) {
  StoppedProcess stopped(pid);
  // A thread that is not stopped yet may start another one meanwhile.
  for (size_t before = SIZE_MAX; before != stopped.threads_.size();) {
    before = stopped.threads_.size();
    WEFT_TRY(stopped.StopNew());
  }
  if (stopped.threads_.empty())
    return Fail(ErrorCode::kNotFound, "process " + std::to_string(pid) + " has ended");
  return stopped;
}

Status StoppedProcess::StopNew() {
  std::vector<int32_t> fresh;
  for (const int32_t tid : ThreadsOf(pid_)) {
    if (threads_.contains(tid)) continue;
    if (ptrace(PTRACE_SEIZE, tid, nullptr, nullptr) != 0) {
      const int why = errno;
      if (why == ESRCH || HasEnded(pid_, tid)) continue;
      if (IsOurs(pid_, tid))
        return Fail(ErrorCode::kTimeout, "process " + std::to_string(pid_) + " is in use by weft");
      return Fail(ErrorCode::kPermission,
                  "process " + std::to_string(pid_) + " cannot be stopped (" + std::strerror(why) +
                      "): it is traced by another program, or the kernel forbids it");
    }
    threads_[tid];
    fresh.push_back(tid);
    (void)ptrace(PTRACE_INTERRUPT, tid, nullptr, nullptr);
  }
  for (const int32_t tid : fresh) {
    WEFT_TRY(Wait(tid));
    if (const auto stopped = threads_.find(tid); stopped != threads_.end())
      Look(tid, stopped->second);
  }
  return {};
}

Status StoppedProcess::Wait(int32_t tid) {
  const auto begin = Clock::now();
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
    const auto waited = Clock::now() - begin;
    if (waited >= kBusyPatience || (waited >= kStopPatience && StateOf(pid_, tid) != 'R'))
      return Fail(ErrorCode::kTimeout, "thread " + std::to_string(tid) + " does not stop");
    std::this_thread::sleep_for(kPoll);
  }
}

// Notes where the thread is. If its system call was given up because of the stop, sets it back to
// that call.
void StoppedProcess::Look(int32_t tid, Thread& thread) const {
  user_regs_struct r{};
  if (ptrace(PTRACE_GETREGS, tid, nullptr, &r) != 0) return;
  if (thread.signal == 0 && static_cast<int64_t>(r.orig_rax) >= 0 &&
      static_cast<int64_t>(r.rax) == -EINTR && !IsSignalled(pid_, tid)) {
    errno = 0;
    const long word = ptrace(PTRACE_PEEKTEXT, tid, r.rip - 2, nullptr);
    if (errno == 0 && (word & 0xffff) == 0x050f) {
      r.rax = r.orig_rax;
      r.rip -= 2;
      r.orig_rax = UINT64_MAX;  // it is in no call
      (void)ptrace(PTRACE_SETREGS, tid, nullptr, &r);
    }
  }
  thread.registers = r;
}

// A thread that did not stop cannot be detached here: the kernel does it when this thread ends.
StoppedProcess::~StoppedProcess() {
  for (const auto& [tid, thread] : threads_)
    (void)ptrace(PTRACE_DETACH, tid, nullptr, reinterpret_cast<void*>(intptr_t{thread.signal}));
}

bool StoppedProcess::IsInside(const std::vector<uint64_t>& entries) const {
  if (entries.empty()) return false;
  const uint64_t lowest = entries.front();
  const uint64_t span = entries.back() + WEFT_HOOK_JUMP_BYTES - lowest;
  const auto is_inside = [&](uint64_t address) {
    if (address - lowest >= span) return false;
    const auto after = std::ranges::lower_bound(entries, address);
    return after != entries.begin() && address - *(after - 1) < WEFT_HOOK_JUMP_BYTES;
  };
  std::vector<uint64_t> words(kStackBytes / sizeof(uint64_t));
  for (const auto& [tid, thread] : threads_) {
    if (thread.registers.rip == 0 || is_inside(thread.registers.rip)) return true;
    const size_t count = ReadStack(pid_, thread.registers.rsp, words);
    if (std::any_of(words.begin(), words.begin() + static_cast<ptrdiff_t>(count), is_inside))
      return true;
  }
  return false;
}

bool StoppedProcess::Executes(const std::vector<Span>& code) const {
  const auto is_inside = [&](uint64_t address) {
    return std::ranges::any_of(code, [&](const Span& span) { return span.Contains(address); });
  };
  for (const auto& [tid, thread] : threads_) {
    if (thread.registers.rip == 0 || is_inside(thread.registers.rip)) return true;
    const std::vector<Stack> stacks = StacksOf(pid_, thread.registers);
    if (stacks.front().words.empty()) return true;
    for (const Stack& stack : stacks)
      if (std::ranges::any_of(stack.interrupted, is_inside)) return true;
  }
  return false;
}

bool StoppedProcess::IsCalledFrom(const std::vector<Span>& callers,
                                  const std::vector<Span>& code) const {
  const auto is_in = [](const std::vector<Span>& spans, uint64_t address) {
    return std::ranges::any_of(spans, [&](const Span& span) { return span.Contains(address); });
  };
  return std::ranges::any_of(threads_, [&](const auto& entry) {
    const user_regs_struct& registers = entry.second.registers;
    if (!is_in(code, registers.rip)) return false;
    std::vector<uint64_t> words(kCalleeBytes / sizeof(uint64_t));
    words.resize(ReadStack(pid_, registers.rsp, words));
    return words.empty() ||
           std::ranges::any_of(words, [&](uint64_t word) { return is_in(callers, word); });
  });
}

bool StoppedProcess::Holds(const std::function<bool(uint64_t at, uint64_t word)>& wanted) const {
  for (const auto& [tid, thread] : threads_) {
    const user_regs_struct& r = thread.registers;
    for (const uint64_t word : {r.rax, r.rbx, r.rcx, r.rdx, r.rsi, r.rdi, r.rbp, r.r8, r.r9, r.r10,
                                r.r11, r.r12, r.r13, r.r14, r.r15, r.rip})
      if (wanted(0, word)) return true;
    for (const Stack& stack : StacksOf(pid_, r))
      for (size_t i = 0; i < stack.words.size(); ++i)
        if (wanted(stack.begin + i * sizeof(uint64_t), stack.words[i])) return true;
  }
  return false;
}

}  // namespace weft::hooks
