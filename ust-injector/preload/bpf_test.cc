// SPDX-License-Identifier: Apache-2.0
// The BPF interpreter of libweft.so against the kernel's: random filters, installed in a child,
// each asked about the same system calls. Every filter answers with an errno or allows, so the
// child lives to tell.
#include <gtest/gtest.h>
#include <linux/audit.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstring>
#include <random>
#include <vector>

extern "C" {
#include "ust-injector/preload/bpf.h"
}

namespace {

#if defined(__x86_64__)
constexpr uint32_t kArch = AUDIT_ARCH_X86_64;
#else
constexpr uint32_t kArch = AUDIT_ARCH_AARCH64;
#endif

constexpr long kNr =
    SYS_tgkill;  // with arguments that name no process: ESRCH, EINVAL, or the filter's
constexpr uint32_t kErrno = SECCOMP_RET_ERRNO;

using Program = std::vector<sock_filter>;

sock_filter Statement(uint16_t code, uint32_t k) { return {code, 0, 0, k}; }

class Generator {
 public:
  explicit Generator(uint32_t seed) : random_(seed) {}

  // Makes a program that allows all other system calls. For kNr it does random loads, arithmetic
  // and forward jumps, and returns an errno of 100 to 163 made from the accumulator.
  Program Make() {
    Program p;
    p.push_back(Statement(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)));
    p.push_back({BPF_JMP | BPF_JEQ | BPF_K, 1, 0, static_cast<uint32_t>(kNr)});
    p.push_back(Statement(BPF_RET | BPF_K, SECCOMP_RET_ALLOW));
    for (uint32_t i = 0; i < BPF_MEMWORDS; ++i) p.push_back(Statement(BPF_ST, i));
    const uint32_t body = 10 + Below(40);
    for (uint32_t left = body; left > 0; --left) p.push_back(Instruction(left - 1));
    p.push_back(Statement(BPF_ALU | BPF_AND | BPF_K, 63));
    p.push_back(Statement(BPF_ALU | BPF_ADD | BPF_K, 100));
    p.push_back(Statement(BPF_ALU | BPF_OR | BPF_K, kErrno));
    p.push_back(Statement(BPF_RET | BPF_A, 0));
    return p;
  }

  uint32_t Word() { return Below(3) == 0 ? Below(8) : static_cast<uint32_t>(random_()); }

 private:
  uint32_t Below(uint32_t n) { return static_cast<uint32_t>(random_() % n); }

  // `room` instructions follow before the end of the body: jumps stay inside.
  sock_filter Instruction(uint32_t room) {
    static constexpr uint16_t kOps[] = {BPF_ADD, BPF_SUB, BPF_MUL, BPF_OR,
                                        BPF_AND, BPF_XOR, BPF_LSH, BPF_RSH};
    static constexpr uint16_t kJumps[] = {BPF_JEQ, BPF_JGT, BPF_JGE, BPF_JSET};
    const uint16_t source = Below(2) ? BPF_X : BPF_K;
    switch (Below(9)) {
      case 0:
        return Statement(BPF_LD | BPF_W | BPF_ABS, Below(16) * 4);
      case 1:
        return Statement((Below(2) ? BPF_LD : BPF_LDX) | BPF_MEM, Below(BPF_MEMWORDS));
      case 2:
        return Statement(Below(2) ? BPF_ST : BPF_STX, Below(BPF_MEMWORDS));
      case 3:
        return Statement((Below(2) ? BPF_LD : BPF_LDX) | BPF_IMM, Word());
      case 4:
        return Statement(BPF_MISC | (Below(2) ? BPF_TAX : BPF_TXA), 0);
      case 5: {
        const auto most = static_cast<uint8_t>(std::min<uint32_t>(room, 20));
        return {static_cast<uint16_t>(BPF_JMP | kJumps[Below(4)] | source),
                static_cast<uint8_t>(Below(most + 1U)), static_cast<uint8_t>(Below(most + 1U)),
                Word()};
      }
      case 6:
        return Below(2) ? Statement(BPF_ALU | BPF_NEG, 0)
                        : Statement(BPF_ALU | BPF_DIV | BPF_K, Word() | 1);
      case 7:
        return Below(2) ? Statement(BPF_JMP | BPF_JA, Below(room + 1))
                        : Statement((Below(2) ? BPF_LD : BPF_LDX) | BPF_W | BPF_LEN, 0);
      default: {
        const uint16_t op = kOps[Below(8)];
        const bool shifts = op == BPF_LSH || op == BPF_RSH;  // by a constant below 32 only
        return Statement(BPF_ALU | op | (shifts ? BPF_K : source), shifts ? Below(32) : Word());
      }
    }
  }

  std::mt19937_64 random_;
};

// The instruction pointer is the one value that the test cannot know: it is masked out by not
// loading it.
bool LoadsInstructionPointer(const Program& p) {
  for (const sock_filter& i : p) {
    if (i.code == (BPF_LD | BPF_W | BPF_ABS) && (i.k == 8 || i.k == 12)) return true;
  }
  return false;
}

struct Answer {
  int done;
  int error;
};

void AskKernel(const Program& p, const uint64_t args[6], Answer* answer) {
  const sock_fprog program = {static_cast<unsigned short>(p.size()),
                              const_cast<sock_filter*>(p.data())};
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 ||
      prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0) {
    _exit(1);
  }
  answer->error =
      syscall(kNr, args[0], args[1], args[2], args[3], args[4], args[5]) == -1 ? errno : 0;
  answer->done = 1;
  _exit(0);
}

TEST(Bpf, AnswersAsTheKernelDoes) {
  auto* answer = static_cast<Answer*>(
      mmap(nullptr, sizeof(Answer), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
  ASSERT_NE(answer, MAP_FAILED);
  Generator generator(20261121);
  int asked = 0;
  for (int round = 0; round < 600; ++round) {
    const Program p = generator.Make();
    if (LoadsInstructionPointer(p)) continue;
    seccomp_data data = {static_cast<int>(kNr), kArch, 0, {}};
    for (auto& arg : data.args) arg = uint64_t{generator.Word()} << 32 | generator.Word();
    const uint64_t args[6] = {data.args[0], data.args[1], data.args[2],
                              data.args[3], data.args[4], data.args[5]};
    *answer = {};
    const pid_t child = fork();
    ASSERT_GE(child, 0);
    if (child == 0) AskKernel(p, args, answer);
    int status = 0;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    if (WIFEXITED(status) && WEXITSTATUS(status) == 1) continue;  // the kernel refused the program
    ASSERT_EQ(answer->done, 1) << "round " << round;
    const uint32_t ours = weft_bpf_run(p.data(), static_cast<uint32_t>(p.size()), &data);
    ASSERT_EQ(ours & SECCOMP_RET_ACTION_FULL, kErrno) << "round " << round;
    ASSERT_EQ(static_cast<int>(ours & SECCOMP_RET_DATA), answer->error) << "round " << round;
    ++asked;
  }
  EXPECT_GT(asked, 200);
  munmap(answer, sizeof(Answer));
}

TEST(Bpf, RefusesWhatTheKernelWouldRefuse) {
  const seccomp_data data = {1, kArch, 0, {}};
  const auto run = [&data](Program p) {
    return weft_bpf_run(p.data(), static_cast<uint32_t>(p.size()), &data);
  };
  EXPECT_EQ(run({}), WEFT_BPF_UNKNOWN);
  EXPECT_EQ(run({Statement(BPF_LD | BPF_W | BPF_ABS, sizeof(seccomp_data))}), WEFT_BPF_UNKNOWN);
  EXPECT_EQ(run({Statement(BPF_LD | BPF_W | BPF_ABS, 1)}), WEFT_BPF_UNKNOWN);
  EXPECT_EQ(run({Statement(BPF_LD | BPF_B | BPF_ABS, 0)}), WEFT_BPF_UNKNOWN);
  EXPECT_EQ(run({Statement(BPF_ST, BPF_MEMWORDS)}), WEFT_BPF_UNKNOWN);
  EXPECT_EQ(run({Statement(BPF_JMP | BPF_JA, 0xffffffff)}), WEFT_BPF_UNKNOWN);
  EXPECT_EQ(run({Statement(BPF_ALU | BPF_DIV | BPF_X, 0)}), WEFT_BPF_UNKNOWN);
  EXPECT_EQ(run({{BPF_JMP | BPF_JEQ | BPF_K, 200, 200, 0}}), WEFT_BPF_UNKNOWN);
}

}  // namespace
