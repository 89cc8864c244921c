// SPDX-License-Identifier: Apache-2.0
// See hijacked_thread.h. ptrace(2), rseq(2).
#include "node-agent/attach/hijacked_thread.h"

#include <elf.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <fstream>
#include <string>
#include <thread>
#include <utility>

#include "node-agent/attach/filter_check.h"
#include "node-agent/attach/go_stack.h"
#include "node-agent/attach/limits.h"
#include "node-agent/hooks/stopped_process.h"

namespace weft::attach {
namespace {

constexpr std::chrono::microseconds kPoll{20}, kSoon{100};
constexpr int kCallStop = SIGTRAP | 0x80;  // PTRACE_O_TRACESYSGOOD
constexpr uint64_t kOptions = PTRACE_O_TRACESYSGOOD | PTRACE_O_TRACEEXEC;
constexpr uint64_t kCodeSegment = 0x33;  // of 64-bit code
constexpr uint64_t kDirectionAndTrapFlags = 0x500;
constexpr uint64_t kAllSignals = UINT64_MAX;

// call *%rbx; mov $39, %eax; syscall (getpid); mov %r12, %rsp; mov $15, %eax; syscall
// (rt_sigreturn); ud2
constexpr uint8_t kTrampoline[] = {0xff, 0xd3, 0xb8, 39, 0, 0, 0,    0x0f, 0x05, 0x4c, 0x89,
                                   0xe4, 0xb8, 15,   0,  0, 0, 0x0f, 0x05, 0x0f, 0x0b};
constexpr uint64_t kTrampolineEnd = 9;

struct RseqSection {  // struct rseq_cs
  uint32_t version, flags;
  uint64_t start, bytes, abort;
};
constexpr uint64_t kRseqSectionOffset = 8;  // of struct rseq

Status Ptrace(const char* what, long request, int32_t tid, void* address, void* data) {
  if (ptrace(static_cast<__ptrace_request>(request), tid, address, data) == 0) return {};
  if (errno == ESRCH) return Fail(ErrorCode::kNotFound, "the process ended meanwhile");
  return FailErrno(what);
}

void* Number(uint64_t value) { return reinterpret_cast<void*>(static_cast<uintptr_t>(value)); }

}  // namespace

std::vector<uint8_t> TrampolineCode() { return {std::begin(kTrampoline), std::end(kTrampoline)}; }

Trampoline TrampolineAt(uint64_t address) {
  return {.address = address, .end = address + kTrampolineEnd};
}

Result<Gates> SearchGates(const hooks::ProcessMemory& memory,
                          const std::vector<hooks::MappedRange>& ranges) {
  Gates gates;
  uint64_t searched = 0;
  std::vector<uint8_t> code(kSearchBytes + kMaxGateBytes);
  for (const hooks::MappedRange& range : ranges) {
    if (!range.executable) continue;
    // A piece reaches into the next one, where what is searched may end.
    for (uint64_t at = range.begin; at < range.end && searched < kMaxSearchedBytes;
         at += kSearchBytes) {
      const uint64_t bytes = std::min<uint64_t>(code.size(), range.end - at);
      searched += bytes;
      if (!memory.Read(at, code.data(), bytes)) break;
      FindGates(at, Bytes(code).first(bytes), gates);
      if (gates.call != 0 && gates.restorer != 0) return gates;
    }
  }
  return Fail(ErrorCode::kUnsupported,
              "its code has no return from a signal handler that weft knows");
}

HijackedThread::HijackedThread(HijackedThread&& other) noexcept
    : memory_(other.memory_),
      tid_(other.tid_),
      end_(other.end_),
      is_seized_(std::exchange(other.is_seized_, false)),
      is_changed_(std::exchange(other.is_changed_, false)),
      is_running_(other.is_running_),
      is_stopped_again_(other.is_stopped_again_),
      gates_(other.gates_),
      state_(std::move(other.state_)),
      frame_(std::move(other.frame_)),
      rseq_offset_(other.rseq_offset_) {}

HijackedThread::~HijackedThread() { (void)Release(); }

// --- take ----------------------------------------------------------------------------------------

Result<HijackedThread> HijackedThread::Take(const hooks::ProcessMemory& memory,
                                            const Target& target, int32_t tid, const Gates& gates) {
  HijackedThread thread(memory, tid);
  WEFT_TRY(thread.Seize());
  WEFT_TRY(thread.WaitUntilStopped());
  WEFT_ASSIGN(const ProcessStatus status, CheckThread(target, tid));
  if (status.seccomp != 0) WEFT_TRY(thread.LeaveFilters());
  WEFT_TRY(thread.ReadState());
  thread.LeaveRseq();
  const user_regs_struct& registers = thread.state_.registers;
  const bool has_libc = HasLibcThreads(memory, registers);
  uint64_t stack = registers.rsp;
  if (!target.is_go && registers.fs_base != 0 && !has_libc)
    return Fail(ErrorCode::kUnsupported,
                "its threads are none of a C library that weft knows (a packed program of Go?)");
  if (target.is_go) {
    WEFT_ASSIGN(stack, StackForFrameOfGo(memory, registers));
    if (!has_libc) thread.rseq_offset_.reset();
  }
  WEFT_TRY(thread.SetUp(gates, stack));
  return thread;
}

Status HijackedThread::Seize() {
  if (ptrace(PTRACE_SEIZE, tid_, nullptr, Number(kOptions)) != 0) {
    if (errno == ESRCH) return Fail(ErrorCode::kNotFound, "the process ended meanwhile");
    return Fail(ErrorCode::kPermission, std::string("the kernel does not let weft trace it (") +
                                            std::strerror(errno) + ")");
  }
  is_seized_ = true;
  return Ptrace("PTRACE_INTERRUPT", PTRACE_INTERRUPT, tid_, nullptr, nullptr);
}

// Returns the status of the next stop.
Result<int> HijackedThread::Wait(std::chrono::milliseconds patience) {
  const auto begin = Clock::now(), end = std::min(begin + patience, end_);
  for (;;) {
    int status = 0;
    const pid_t got = waitpid(tid_, &status, __WALL | WNOHANG);
    if (got == tid_ && WIFSTOPPED(status)) {
      is_running_ = false;
      if (status >> 16 != PTRACE_EVENT_EXEC) return status;
      is_changed_ = false;
      return Fail(ErrorCode::kNotFound, "it executed another program meanwhile; try again");
    }
    if (got == tid_ || (got < 0 && errno != EINTR)) {
      is_seized_ = is_changed_ = false;
      return Fail(ErrorCode::kNotFound, "the process ended meanwhile");
    }
    const auto now = Clock::now();
    if (now >= end)
      return Fail(ErrorCode::kTimeout, "thread " + std::to_string(tid_) + " does not stop");
    // Most stops come at once, and a sleep takes longer.
    if (now - begin < kSoon)
      std::this_thread::yield();
    else
      std::this_thread::sleep_for(kPoll);
  }
}

// A signal that comes first goes to the thread, as without weft.
Status HijackedThread::WaitUntilStopped() {
  for (int i = 0; i < kMaxStops; ++i) {
    WEFT_ASSIGN(const int status, Wait(kStopPatience));
    if (status >> 16 == PTRACE_EVENT_STOP) return {};
    const int signal = WSTOPSIG(status) == kCallStop ? 0 : WSTOPSIG(status);
    WEFT_TRY(Continue("PTRACE_CONT", PTRACE_CONT, signal));
  }
  return Fail(ErrorCode::kTimeout, "thread " + std::to_string(tid_) + " does not stop");
}

// Each thread has filters of its own.
Status HijackedThread::LeaveFilters() {
  if (!Ptrace("PTRACE_SETOPTIONS", PTRACE_SETOPTIONS, tid_, nullptr,
              Number(kOptions | PTRACE_O_SUSPEND_SECCOMP)))
    return Fail(ErrorCode::kPermission,
                "it has a seccomp filter, and this kernel does not let weft suspend it");
  return CheckFilters(tid_);
}

Status HijackedThread::ReadState() {
  WEFT_TRY(Ptrace("PTRACE_GETREGS", PTRACE_GETREGS, tid_, nullptr, &state_.registers));
  if (state_.registers.cs != kCodeSegment)
    return Fail(ErrorCode::kUnsupported, "it runs code of 32 bits; weft records 64-bit programs");
  state_.fpu.resize(kMaxFpuBytes);
  iovec fpu{state_.fpu.data(), state_.fpu.size()};
  WEFT_TRY(Ptrace("PTRACE_GETREGSET", PTRACE_GETREGSET, tid_, Number(NT_X86_XSTATE), &fpu));
  state_.fpu.resize(fpu.iov_len);
  return Ptrace("PTRACE_GETSIGMASK", PTRACE_GETSIGMASK, tid_, Number(sizeof(state_.blocked)),
                &state_.blocked);
}

// A thread in a restartable sequence goes on where it would after any other interruption: system
// calls made meanwhile end the sequence, and the kernel would not notice.
void HijackedThread::LeaveRseq() {
  __ptrace_rseq_configuration rseq{};
  if (ptrace(PTRACE_GET_RSEQ_CONFIGURATION, tid_, Number(sizeof(rseq)), &rseq) !=
          static_cast<long>(sizeof(rseq)) ||
      rseq.rseq_abi_pointer == 0)
    return;
  user_regs_struct& r = state_.registers;
  rseq_offset_ = static_cast<int64_t>(rseq.rseq_abi_pointer - r.fs_base);
  uint64_t address = 0;
  RseqSection section{};
  if (!memory_->Read(rseq.rseq_abi_pointer + kRseqSectionOffset, &address, sizeof(address)) ||
      address == 0 || !memory_->Read(address, &section, sizeof(section)))
    return;
  if (r.rip - section.start < section.bytes) r.rip = section.abort;
}

// The order matters: see the invariant. Registers that lead into the frame come before signals are
// blocked.
Status HijackedThread::SetUp(const Gates& gates, uint64_t stack) {
  gates_ = gates;
  // A stop alone makes some calls give up.
  if (static_cast<int64_t>(state_.registers.orig_rax) >= 0 &&
      static_cast<int64_t>(state_.registers.rax) == -EINTR &&
      !hooks::IsSignalled(memory_->pid(), tid_)) {
    uint16_t code = 0;
    if (memory_->Read(state_.registers.rip - 2, &code, sizeof(code)) && code == 0x050f) {
      state_.registers.rax = state_.registers.orig_rax;
      state_.registers.rip -= 2;
      state_.registers.orig_rax = UINT64_MAX;
    }
  }
  WEFT_ASSIGN(frame_, MakeEmergencyFrame(AtTheCall(state_), stack, gates.restorer));
  if (!memory_->Write(frame_.address, frame_.bytes))
    return Fail(ErrorCode::kUnsupported,
                "the stack of thread " + std::to_string(tid_) + " has no room");
  user_regs_struct r = state_.registers;
  r.rip = gates.call;
  r.rax = SYS_getpid;
  r.orig_rax = UINT64_MAX;
  r.rsp = frame_.address;
  r.eflags &= ~kDirectionAndTrapFlags;
  is_changed_ = true;
  WEFT_TRY(Ptrace("PTRACE_SETREGS", PTRACE_SETREGS, tid_, nullptr, &r));
  uint64_t all = kAllSignals;
  return Ptrace("PTRACE_SETSIGMASK", PTRACE_SETSIGMASK, tid_, Number(sizeof(all)), &all);
}

// --- run -----------------------------------------------------------------------------------------

Result<user_regs_struct> HijackedThread::NextCall() {
  for (int i = 0; i < kMaxStops; ++i) {
    WEFT_TRY(Continue("PTRACE_SYSCALL", PTRACE_SYSCALL, 0));
    WEFT_ASSIGN(const int status, Wait(kCallPatience));
    const int signal = WSTOPSIG(status);
    if (signal == kCallStop) {
      user_regs_struct r{};
      WEFT_TRY(Ptrace("PTRACE_GETREGS", PTRACE_GETREGS, tid_, nullptr, &r));
      return r;
    }
    if (status >> 16 != 0) continue;  // the whole process stops, say: this thread a little later
    if (signal == SIGSTOP) {
      is_stopped_again_ = true;
      continue;
    }
    return Fail(ErrorCode::kIo, "signal " + std::to_string(signal) + " in code of weft");
  }
  return Fail(ErrorCode::kTimeout, "thread " + std::to_string(tid_) + " does not come back");
}

Status HijackedThread::Continue(const char* what, long request, int signal) {
  Status status = Ptrace(what, request, tid_, nullptr, Number(static_cast<uint64_t>(signal)));
  is_running_ = is_running_ || status.has_value();
  return status;
}

// A thread that did not stop in time may execute another program before it stops.
Status HijackedThread::Go(const user_regs_struct& registers) {
  if (!is_seized_ || is_running_)
    return Fail(ErrorCode::kTimeout, "thread " + std::to_string(tid_) + " is not stopped");
  return Ptrace("PTRACE_SETREGS", PTRACE_SETREGS, tid_, nullptr,
                const_cast<user_regs_struct*>(&registers));
}

Result<uint64_t> HijackedThread::Call(const char* name, long number,
                                      const std::array<uint64_t, 6>& arguments) {
  user_regs_struct r = state_.registers;
  r.rip = gates_.call;
  r.rsp = frame_.address;
  r.rax = static_cast<uint64_t>(number);
  r.orig_rax = UINT64_MAX;
  r.eflags &= ~kDirectionAndTrapFlags;
  r.rdi = arguments[0];
  r.rsi = arguments[1];
  r.rdx = arguments[2];
  r.r10 = arguments[3];
  r.r8 = arguments[4];
  r.r9 = arguments[5];
  if (!is_changed_) return Fail(ErrorCode::kNotFound, "the process ended meanwhile");
  WEFT_TRY(Go(r));
  WEFT_ASSIGN(const user_regs_struct begin, NextCall());
  WEFT_ASSIGN(const user_regs_struct end, NextCall());
  if (begin.orig_rax != static_cast<uint64_t>(number) || end.rip != gates_.call + 2)
    return Fail(ErrorCode::kIo, std::string(name) + ": the thread ran something else");
  const auto result = static_cast<int64_t>(end.rax);
  if (result >= 0 || result < -4095) return end.rax;
  errno = static_cast<int>(-result);
  return FailErrno(std::string(name) + " in the process");
}

Status HijackedThread::Run(const Trampoline& trampoline, uint64_t function, uint64_t stack_top,
                           const std::array<uint64_t, 3>& arguments) {
  user_regs_struct r = state_.registers;
  r.rip = trampoline.address;
  r.rsp = stack_top & ~uint64_t{15};
  r.rbp = 0;
  r.rbx = function;
  r.r12 = frame_.address + sizeof(uint64_t);
  r.rax = 0;
  r.orig_rax = UINT64_MAX;
  r.eflags &= ~kDirectionAndTrapFlags;
  r.rdi = arguments[0];
  r.rsi = arguments[1];
  r.rdx = arguments[2];
  if (!is_changed_) return Fail(ErrorCode::kNotFound, "the process ended meanwhile");
  WEFT_TRY(Go(r));
  for (int i = 0; i < kMaxStops; ++i) {
    WEFT_ASSIGN(const user_regs_struct at, NextCall());
    if (at.rip != trampoline.end) continue;
    WEFT_ASSIGN(const user_regs_struct end, NextCall());  // the end of the same call
    return end.rip == trampoline.end
               ? Status{}
               : Fail(ErrorCode::kIo, "the thread ran something else than weft's code");
  }
  return Fail(ErrorCode::kTimeout, "code of weft does not end");
}

// --- release -------------------------------------------------------------------------------------

// The registers are set in a stop between system calls and signals: there the kernel does what is
// due for the call that the thread was in, and for signals that wait.
Status HijackedThread::Restore() {
  end_ = Clock::now() + kCallPatience;
  WEFT_TRY(Ptrace("PTRACE_INTERRUPT", PTRACE_INTERRUPT, tid_, nullptr, nullptr));
  if (!is_running_) WEFT_TRY(Continue("PTRACE_CONT", PTRACE_CONT, 0));
  for (int i = 0;; ++i) {
    WEFT_ASSIGN(const int status, Wait(kCallPatience));
    if (status >> 16 == PTRACE_EVENT_STOP) break;
    if (i == kMaxStops) return Fail(ErrorCode::kTimeout, "a thread does not stop");
    is_stopped_again_ = is_stopped_again_ || WSTOPSIG(status) == SIGSTOP;
    WEFT_TRY(Continue("PTRACE_CONT", PTRACE_CONT, 0));
  }
  iovec fpu{state_.fpu.data(), state_.fpu.size()};
  WEFT_TRY(Ptrace("PTRACE_SETREGSET", PTRACE_SETREGSET, tid_, Number(NT_X86_XSTATE), &fpu));
  WEFT_TRY(Ptrace("PTRACE_SETSIGMASK", PTRACE_SETSIGMASK, tid_, Number(sizeof(state_.blocked)),
                  &state_.blocked));
  return Go(state_.registers);
}

Status HijackedThread::Release() {
  if (!is_seized_) return {};
  Status status;
  if (is_changed_) status = Restore();
  is_changed_ = false;
  // As long as the thread is held, no other process can have this process id. Restore() may have
  // seen its end.
  if (std::exchange(is_stopped_again_, false) && is_seized_) (void)kill(memory_->pid(), SIGSTOP);
  // A thread that does not stop is detached by the kernel when this thread ends.
  if (std::exchange(is_seized_, false)) (void)ptrace(PTRACE_DETACH, tid_, nullptr, nullptr);
  return status;
}

}  // namespace weft::attach
