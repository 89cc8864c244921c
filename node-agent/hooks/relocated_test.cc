// SPDX-License-Identifier: Apache-2.0
// The differential test of moved instructions, on functions of real libraries: a child runs a
// function's first instructions by single steps, then what Displace made of them, from the same
// registers and memory. Both must end at the same address with the same registers and memory.
#include <Zydis/Zydis.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <link.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <cstring>
#include <random>

#include "lib/abi/hooks.h"
#include "lib/base/unique_fd.h"
#include "node-agent/hooks/displace.h"
#include "node-agent/hooks/functions.h"
#include "node-agent/hooks/process_memory.h"

namespace weft::hooks {
namespace {

constexpr size_t kScratchBytes = size_t{64} << 10;
constexpr int kMaxSteps = 64;  // moved instructions are at most a dozen

// Shared with the child.
uint8_t* MapShared(void* near, size_t bytes, int protection) {
  void* map = mmap(near, bytes, protection, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  return map == MAP_FAILED ? nullptr : static_cast<uint8_t*>(map);
}

// Returns how many bytes the instructions have that are moved.
size_t DisplacedBytes(Bytes code) {
  ZydisDecoder decoder;
  ZydisDecodedInstruction instruction;
  ZydisDecoderInit(&decoder, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64);
  size_t at = 0;
  while (at < WEFT_HOOK_JUMP_BYTES &&
         ZYAN_SUCCESS(ZydisDecoderDecodeInstruction(&decoder, nullptr, code.data() + at,
                                                    code.size() - at, &instruction)))
    at += instruction.length;
  return at;
}

constexpr int kGoesOn = -1;

struct State {
  user_regs_struct registers{};
  user_fpregs_struct floating{};
  int signal = kGoesOn;  // that ended it; 0: it left the instructions
  std::vector<uint8_t> memory;
};

bool SameRegisters(const user_regs_struct& a, const user_regs_struct& b) {
  const auto values = [](const user_regs_struct& r) {
    return std::array{r.rax, r.rbx, r.rcx, r.rdx, r.rsi, r.rdi, r.rbp, r.rsp,   r.r8,
                      r.r9,  r.r10, r.r11, r.r12, r.r13, r.r14, r.r15, r.eflags};
  };
  return values(a) == values(b);
}

bool operator==(const State& a, const State& b) {
  // At a fault, or in a repeated instruction, the places differ, as they must.
  return a.signal == b.signal && SameRegisters(a.registers, b.registers) &&
         (a.signal != 0 || a.registers.rip == b.registers.rip) &&
         std::memcmp(&a.floating.xmm_space, &b.floating.xmm_space, sizeof(a.floating.xmm_space)) ==
             0 &&
         a.memory == b.memory;
}

class Relocated : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    if (dlopen(GetParam(), RTLD_NOW) == nullptr) GTEST_SKIP() << dlerror();
    dl_iterate_phdr(
        [](dl_phdr_info* info, size_t, void* self) {
          auto* test = static_cast<Relocated*>(self);
          if (std::strstr(info->dlpi_name, GetParam()) == nullptr) return 0;
          test->path_ = info->dlpi_name;
          test->base_ = info->dlpi_addr;
          return 1;
        },
        this);
    ASSERT_FALSE(path_.empty());
    scratch_ = MapShared(nullptr, kScratchBytes, PROT_READ | PROT_WRITE);
    thunk_ = MapShared(nullptr, 4096, PROT_READ | PROT_WRITE | PROT_EXEC);
    ASSERT_TRUE(scratch_ != nullptr && thunk_ != nullptr);
    child_ = fork();
    if (child_ == 0) {
      if (ptrace(PTRACE_TRACEME, 0, 0, 0) != 0) _exit(1);
      raise(SIGSTOP);
      _exit(0);
    }
    int status = 0;
    ASSERT_EQ(waitpid(child_, &status, 0), child_);
    if (!WIFSTOPPED(status)) GTEST_SKIP() << "ptrace is not allowed here";
    ASSERT_EQ(ptrace(PTRACE_GETREGS, child_, 0, &before_), 0);
    ASSERT_EQ(ptrace(PTRACE_GETFPREGS, child_, 0, &floating_), 0);
    std::mt19937_64 random(1);
    initial_.resize(kScratchBytes);
    for (uint8_t& byte : initial_) byte = static_cast<uint8_t>(random());
    auto* xmm = reinterpret_cast<uint8_t*>(&floating_.xmm_space);
    for (size_t i = 0; i < sizeof(floating_.xmm_space); ++i)
      xmm[i] = static_cast<uint8_t>(random());
  }

  void TearDown() override {
    if (child_ > 0) {
      kill(child_, SIGKILL);
      waitpid(child_, nullptr, 0);
    }
  }

  // All general registers point into the scratch memory, so that most instructions find memory.
  State Run(uint64_t from, uint64_t begin, uint64_t end) {
    std::memcpy(scratch_, initial_.data(), kScratchBytes);
    State state{.registers = before_, .floating = floating_};
    user_regs_struct& r = state.registers;
    uint64_t at = reinterpret_cast<uint64_t>(scratch_) + kScratchBytes / 4;
    for (auto* general : {&r.rax, &r.rbx, &r.rcx, &r.rdx, &r.rsi, &r.rdi, &r.rbp, &r.r8, &r.r9,
                          &r.r10, &r.r11, &r.r12, &r.r13, &r.r14, &r.r15})
      *general = at += 1032;
    r.rsp = reinterpret_cast<uint64_t>(scratch_) + kScratchBytes / 2 + 8;
    r.rip = from;
    r.orig_rax = ~0ull;  // it is not in a system call
    r.eflags = 0x202;
    EXPECT_EQ(ptrace(PTRACE_SETREGS, child_, 0, &r), 0);
    EXPECT_EQ(ptrace(PTRACE_SETFPREGS, child_, 0, &state.floating), 0);
    for (int i = 0; i < kMaxSteps; ++i) {
      int status = 0;
      if (ptrace(PTRACE_SINGLESTEP, child_, 0, 0) != 0 || waitpid(child_, &status, 0) != child_ ||
          !WIFSTOPPED(status)) {
        ADD_FAILURE() << "the child ended";
        break;
      }
      EXPECT_EQ(ptrace(PTRACE_GETREGS, child_, 0, &r), 0);
      if (WSTOPSIG(status) != SIGTRAP) state.signal = WSTOPSIG(status);
      if (state.signal == kGoesOn && (r.rip < begin || r.rip >= end)) state.signal = 0;
      if (state.signal != kGoesOn) break;
    }
    EXPECT_EQ(ptrace(PTRACE_GETFPREGS, child_, 0, &state.floating), 0);
    r.eflags &= ~0x10000ull;  // the resume flag tells of a fault only
    state.memory.assign(scratch_, scratch_ + kScratchBytes);
    return state;
  }

  std::string path_;
  uint64_t base_ = 0;
  uint8_t* scratch_ = nullptr;
  uint8_t* thunk_ = nullptr;
  pid_t child_ = 0;
  user_regs_struct before_{};
  user_fpregs_struct floating_{};
  std::vector<uint8_t> initial_;
};

TEST_P(Relocated, InstructionsDoWhatTheyDidInTheirPlace) {
  const UniqueFd file(open(path_.c_str(), O_RDONLY | O_CLOEXEC));
  const auto functions = ReadFunctions(file.get(), {{"t", {.name = "*"}}}, {0});
  ASSERT_TRUE(functions) << functions.error().message;
  const auto memory = ProcessMemory::Open(getpid());
  ASSERT_TRUE(memory) << memory.error().message;
  const auto to = reinterpret_cast<uint64_t>(thunk_);
  size_t compared = 0, changing = 0;
  for (const Function& function : functions->functions) {
    const uint64_t address = base_ + function.value;
    if (!function.why_not.empty()) continue;
    Bytes code(reinterpret_cast<const uint8_t*>(address), CodeBytes(address, function.size));
    if (!IsPadding(code.subspan(function.size))) code = code.first(function.size);
    const auto read = [&](uint64_t at, void* out, size_t size) {
      return memory->Read(at, out, size);
    };
    if (!CheckEntry(address, code, read)) continue;
    const auto moved = Displace(address, code, to);
    if (!moved) continue;
    std::memcpy(thunk_, moved->data(), moved->size());
    const size_t length = DisplacedBytes(code);
    const State there = Run(address, address, address + length);
    const State here = Run(to, to, to + moved->size());
    // Some instructions change memory of the library, or ask the processor for random numbers.
    if (!(there == Run(address, address, address + length))) {
      ++changing;
      continue;
    }
    ++compared;
    ASSERT_TRUE(here == there) << function.symbol << ": signals " << there.signal << " "
                               << here.signal << std::hex << ", at " << there.registers.rip << " "
                               << here.registers.rip;
  }
  RecordProperty("compared", std::to_string(compared));
  std::printf("%s: %zu functions compared, %zu change what they read\n", GetParam(), compared,
              changing);
  EXPECT_GT(compared, functions->functions.size() * 9 / 10);
}

INSTANTIATE_TEST_SUITE_P(Libraries, Relocated,
                         testing::Values("libc.so.6", "libcrypto.so.3", "libstdc++.so.6"),
                         [](const auto& info) {
                           std::string name = info.param;
                           return name.substr(0, name.find_first_of(".+"));
                         });

}  // namespace
}  // namespace weft::hooks
