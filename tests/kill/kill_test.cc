// SPDX-License-Identifier: Apache-2.0
// P3's equality for one traced program, exactly, whatever happens to it: threads, nested signals,
// forks, vforks, children that share the memory, threads that come and go, in glibc and musl
// programs; SIGKILL at random and at every instruction boundary of the writer's sections.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <random>

#include "lib/abi/context.h"
#include "lib/abi/control.h"
#include "tests/kill/sections.h"
#include "tests/kill/traced_program.h"

namespace weft::kill_test {
namespace {

using namespace std::chrono_literals;

bool Long() {
  const char* const value = getenv("WEFT_LONG");
  return value != nullptr && std::string(value) == "1";
}

// Checks both halves of P3. `exact`: no process was killed.
void ExpectBalance(const Books& b, bool exact) {
  EXPECT_EQ(b.wrong, "");
  EXPECT_EQ(b.recorded, b.read + b.overwritten);
  const uint64_t emitted = b.recorded + b.discarded;
  EXPECT_GE(emitted, b.ended);
  EXPECT_LE(emitted, b.begun);
  if (exact) {
    EXPECT_EQ(b.begun, b.ended);
  }
}

struct Storm {
  const char* name;
  const char* flags;
  weft_ring_mode mode;
  int threads;
  const char* environment;
  weft_clock_id clock = WEFT_CLOCK_TSC;
  bool rseq_is_refused = false;
  bool is_musl = false;
};

Storm Musl(const char* name, const char* flags, weft_ring_mode mode) {
  return {
      .name = name, .flags = flags, .mode = mode, .threads = 4, .environment = "", .is_musl = true};
}

constexpr const char* kOwnRseq = "GLIBC_TUNABLES=glibc.pthread.rseq=0";
// The slot is the CPU's, as before Linux 6.3. The other feature size makes it the concurrency id's,
// which is 0 before Linux 6.3: use it for one thread.
constexpr const char* kCpuSlots = "WEFT_STRESS_RSEQ_FEATURES=20";
constexpr const char* kMmCidSlots = "WEFT_STRESS_RSEQ_FEATURES=28";

// Checks which slots the records came from. All threads use the atomic slot while a vfork child
// lives, and for good after a child was made that shares the memory.
void ExpectSlots(const Books& b, const Storm& storm) {
  if (storm.rseq_is_refused) {
    EXPECT_EQ(b.recorded_atomically, b.recorded);
    EXPECT_EQ(b.discarded_atomically, b.discarded);
  } else if (strchr(storm.flags, 'm') != nullptr) {
    EXPECT_GT(b.recorded_atomically, 0U);
  } else if (strchr(storm.flags, 'v') == nullptr) {
    EXPECT_LT(b.recorded_atomically, b.recorded / 2);
  }
}

class Threads : public testing::TestWithParam<Storm> {};

TEST_P(Threads, EveryEventIsCountedExactlyAtFullSpeed) {
  const Storm& storm = GetParam();
  if (storm.is_musl && MuslWorkerPath().empty()) GTEST_SKIP() << "no compiler for musl here";
  TracedProgram program({.mode = storm.mode,
                         .clock = storm.clock,
                         .extra_environment = storm.environment,
                         .rseq_is_refused = storm.rseq_is_refused,
                         .is_musl = storm.is_musl});
  const pid_t worker = program.Start(storm.threads, 100000, storm.flags);
  const Books b = program.Finish(worker, false);
  ExpectBalance(b, true);
  EXPECT_GE(b.begun, 100000U * static_cast<uint64_t>(storm.threads));
  EXPECT_GT(b.read, 0U);
  ExpectSlots(b, storm);
  if (strchr(storm.flags, 'd') == nullptr) return;
  EXPECT_GT(b.read_of_plugin, 0U);
  EXPECT_GT(b.read_of_provider, 0U);
}

INSTANTIATE_TEST_SUITE_P(
    Kill, Threads,
    testing::Values(
        Storm{"OneThread", "-", WEFT_RING_DISCARD, 1, ""},
        Storm{"Monotonic", "stfv", WEFT_RING_DISCARD, 4, "", WEFT_CLOCK_MONOTONIC},
        Storm{"MonotonicOverwrite", "st", WEFT_RING_OVERWRITE, 4, "", WEFT_CLOCK_MONOTONIC},
        Storm{"ManyThreads", "t", WEFT_RING_DISCARD, 16, ""},
        Storm{"Signals", "st", WEFT_RING_DISCARD, 4, ""},
        Storm{"Forks", "stf", WEFT_RING_DISCARD, 4, ""},
        Storm{"Vforks", "stv", WEFT_RING_DISCARD, 4, ""},
        Storm{"Overwrite", "st", WEFT_RING_OVERWRITE, 4, ""},
        Storm{"Plugins", "dst", WEFT_RING_DISCARD, 4, ""},
        Storm{"PluginsOverwrite", "dst", WEFT_RING_OVERWRITE, 4, ""},
        Storm{"PluginsMonotonic", "dst", WEFT_RING_DISCARD, 4, "", WEFT_CLOCK_MONOTONIC},
        Storm{"PluginsAtomicSlot", "wdst", WEFT_RING_DISCARD, 4, "", WEFT_CLOCK_TSC, true},
        Storm{"SharedMemory", "stm", WEFT_RING_DISCARD, 4, ""},
        Storm{"SharedMemoryOverwrite", "stm", WEFT_RING_OVERWRITE, 4, ""},
        Storm{"SharedMemoryOwnRseq", "stm", WEFT_RING_DISCARD, 4, kOwnRseq},
        Storm{"Detached", "sta", WEFT_RING_DISCARD, 4, ""},
        Storm{"OwnRseq", "st", WEFT_RING_DISCARD, 4, kOwnRseq},
        Storm{"CpuSlots", "st", WEFT_RING_DISCARD, 4, kCpuSlots},
        Storm{"OwnRseqVforks", "stv", WEFT_RING_DISCARD, 4, kOwnRseq},
        Storm{"OwnRseqOverwrite", "stf", WEFT_RING_OVERWRITE, 4, kOwnRseq},
        Musl("MuslDetached", "sta", WEFT_RING_DISCARD),
        Musl("MuslDetachedOverwrite", "sta", WEFT_RING_OVERWRITE),
        Musl("MuslSharedMemory", "stam", WEFT_RING_DISCARD),
        Storm{"AtomicSlot", "st", WEFT_RING_DISCARD, 4, "", WEFT_CLOCK_TSC, true},
        Storm{"AtomicSlotChildren", "wstfv", WEFT_RING_DISCARD, 4, "", WEFT_CLOCK_TSC, true},
        Storm{"AtomicSlotMonotonic", "st", WEFT_RING_DISCARD, 4, "", WEFT_CLOCK_MONOTONIC, true},
        Storm{"AtomicSlotOverwrite", "wstfv", WEFT_RING_OVERWRITE, 4, "", WEFT_CLOCK_TSC, true}),
    [](const auto& info) { return info.param.name; });

TEST(Kill, AtRandomLosesNothingThatWasCommitted) {
  std::mt19937_64 random(20261121);
  const int rounds = Long() ? 50000 : 5000;
  const char* const kFlags[] = {"-", "s", "st", "stf", "v", "dst", "stm", "sta"};
  // Under a seccomp filter threads wait only briefly for the thread that sets things up, and
  // signals come meanwhile: an event that is given up then cannot be counted before the set-up is
  // done.
  const char* const kRefusedFlags[] = {"w", "ws", "wst", "wstf", "wv", "wdst", "wstm", "wsta"};
  uint64_t atomically = 0;
  for (int i = 0; i < rounds && !HasFailure(); ++i) {
    SCOPED_TRACE(i);
    const bool refused = i % 7 == 3;
    TracedProgram program({.mode = i % 3 == 0 ? WEFT_RING_OVERWRITE : WEFT_RING_DISCARD,
                           .clock = i % 4 == 0 ? WEFT_CLOCK_MONOTONIC : WEFT_CLOCK_TSC,
                           .extra_environment = i % 7 == 0 ? kOwnRseq : "",
                           .rseq_is_refused = refused});
    const pid_t worker =
        program.Start(1 + i % 4, 0, (refused ? kRefusedFlags : kFlags)[i / 84 % 8]);
    const int pauses = static_cast<int>(random() % 8);
    for (int p = 0; p < pauses; ++p) {
      usleep(random() % 1000);
      program.Poll();
    }
    const Books b = program.Finish(worker, true);
    ExpectBalance(b, false);
    if (!refused) continue;
    EXPECT_EQ(b.recorded_atomically, b.recorded);
    atomically += b.recorded;
  }
  EXPECT_GT(atomically, static_cast<uint64_t>(rounds));
}

// Takes control of a worker that stopped itself (flag p); it is still stopped.
void SeizeStopped(pid_t worker, long options) {
  int status = 0;
  ASSERT_EQ(waitpid(worker, &status, WUNTRACED), worker);
  ASSERT_TRUE(WIFSTOPPED(status));
  ASSERT_EQ(ptrace(PTRACE_SEIZE, worker, nullptr, PTRACE_O_EXITKILL | options), 0)
      << strerror(errno);
  ASSERT_EQ(waitpid(worker, &status, 0), worker);
}

// Another thread may have its event's id already, and writes to a ring as soon as it is there.
TEST(Kill, ARingSetIsAnnouncedWithItsDescriptions) {
  TracedProgram program({});
  const pid_t worker = program.Start(1, 2000, "p");
  ASSERT_NO_FATAL_FAILURE(SeizeStopped(worker, PTRACE_O_TRACESYSGOOD));
  kill(worker, SIGCONT);
  int status = 0;
  bool announced = false;
  while (!announced) {
    ASSERT_EQ(ptrace(PTRACE_SYSCALL, worker, nullptr, 0), 0);
    ASSERT_EQ(waitpid(worker, &status, 0), worker);
    ASSERT_TRUE(WIFSTOPPED(status));
    if (WSTOPSIG(status) != (SIGTRAP | 0x80)) continue;
    __ptrace_syscall_info call{};
    ASSERT_GT(ptrace(PTRACE_GET_SYSCALL_INFO, worker, sizeof(call), &call), 0);
    // It closes its socket when it has said it.
    announced =
        call.op == PTRACE_SYSCALL_INFO_ENTRY && call.entry.nr == SYS_close && program.HasCallers();
  }
  const Books b = program.Finish(worker, true);
  EXPECT_EQ(b.wrong, "");
  EXPECT_EQ(b.ring_sets, 1U);
  EXPECT_EQ(b.undescribed, 0U);
}

using Pause = std::chrono::steady_clock::duration;

// Stops the thread that holds the lock, before this call, until `enough`.
void StopTheOwner(const char* flags, bool (*before)(const __ptrace_syscall_info& call),
                  bool (*enough)(Pause stood, const TracedProgram& program), Books* books,
                  bool* is_main = nullptr) {
  TracedProgram program({.subbuf_shift = 19});  // nothing is discarded for want of room
  const pid_t worker = program.Start(4, 2000, flags);
  ASSERT_NO_FATAL_FAILURE(SeizeStopped(worker, PTRACE_O_TRACESYSGOOD | PTRACE_O_TRACECLONE));
  kill(worker, SIGCONT);
  int status = 0;
  ptrace(PTRACE_SYSCALL, worker, nullptr, 0);
  pid_t owner = 0;
  for (int turns = 0; owner == 0 && turns < 100000; ++turns) {
    const pid_t thread = waitpid(-1, &status, __WALL);
    ASSERT_GT(thread, 0);
    if (!WIFSTOPPED(status)) continue;
    const bool call_stop = WSTOPSIG(status) == (SIGTRAP | 0x80);
    __ptrace_syscall_info call{};
    if (call_stop) ptrace(PTRACE_GET_SYSCALL_INFO, thread, sizeof(call), &call);
    if (call.op == PTRACE_SYSCALL_INFO_ENTRY && before(call)) {
      owner = thread;
    } else {
      const bool signal = !call_stop && status >> 16 == 0;
      ptrace(PTRACE_SYSCALL, thread, nullptr, signal ? WSTOPSIG(status) : 0);
    }
  }
  ASSERT_NE(owner, 0);
  if (is_main != nullptr) *is_main = owner == worker;
  // The others come to their next call or its end, and then run on freely.
  const auto begin = std::chrono::steady_clock::now();
  while (!enough(std::chrono::steady_clock::now() - begin, program)) {
    const pid_t thread = waitpid(-1, &status, __WALL | WNOHANG);
    if (thread > 0 && WIFSTOPPED(status)) ptrace(PTRACE_DETACH, thread, nullptr, 0);
    if (thread == 0) usleep(1000);
  }
  ptrace(PTRACE_DETACH, owner, nullptr, 0);
  *books = program.Finish(worker, false);
  ExpectBalance(*books, true);
}

// It may have to wait for a CPU, for longer than others take for any number of tries.
TEST(Kill, ThreadsWaitForTheMakerOfTheRingSet) {
  Books b;
  // The lock is held when the thread with descriptors of its own is cloned.
  const auto clone = [](const __ptrace_syscall_info& call) { return call.entry.nr == SYS_clone; };
  const auto enough = [](Pause stood, const TracedProgram&) { return stood > 300ms; };
  ASSERT_NO_FATAL_FAILURE(StopTheOwner("p", clone, enough, &b));
  EXPECT_EQ(b.discarded, 0U);
}

// The first decision makes room for its copy of the rules.
bool CopiesRules(const __ptrace_syscall_info& call) {
  return call.entry.nr == SYS_mmap && call.entry.args[1] == WEFT_MAX_RULESET_BYTES;
}

// No thread waits for ever: events that came meanwhile are counted for the channels that want them.
TEST(Kill, CountsEventsThatNoThreadCouldDecideOn) {
  Books b;
  // Before that decision, a thread's first event ends only if it is given up.
  const auto enough = [](Pause stood, const TracedProgram& program) {
    return program.HasEnded() || stood > 120s;
  };
  ASSERT_NO_FATAL_FAILURE(StopTheOwner("p", CopiesRules, enough, &b));
  EXPECT_GT(b.discarded, 0U);
}

// The main thread gives its first event up and forks. The parent counts the events that could not
// be decided on before; the child does not.
TEST(Kill, CountsUndecidedEventsOnceAcrossFork) {
  Books b;
  const auto enough = [](Pause stood, const TracedProgram& program) {
    constexpr uint64_t kFirstChild = 8;
    return program.HasEnded(kFirstChild) || stood > 60s;
  };
  bool is_main = true;
  for (int tries = 0; is_main && tries < 5; ++tries)
    ASSERT_NO_FATAL_FAILURE(StopTheOwner("pfl", CopiesRules, enough, &b, &is_main));
  EXPECT_FALSE(is_main);
  EXPECT_GT(b.discarded, 0U);
  EXPECT_GT(b.ring_sets, 1U);
}

// A traced program that should come to a breakpoint.
struct Way {
  TracedProgramConfig config;
  int threads = 1;
  const char* flags = "t";
  uint64_t events = 2000;
  bool is_read = false;  // while it runs, which is for a second at most
};

// Waits until the worker is at a breakpoint or has ended. A child that shares its memory and dies
// at a breakpoint is reported by its own wait status. An untraced thread is killed by a breakpoint,
// and its process with it.
void WaitForBreakpoint(pid_t worker, bool is_read, TracedProgram* program, bool* reached) {
  const auto begin = std::chrono::steady_clock::now();
  int status = 0;
  for (;;) {
    const pid_t changed = waitpid(worker, &status, is_read ? WNOHANG : 0);
    if (changed == 0) {
      if (std::chrono::steady_clock::now() - begin > 1s) return;
      program->Poll();
      continue;
    }
    if (changed != worker || !WIFSTOPPED(status)) break;
    const bool is_event = status >> 16 != 0;
    if (WSTOPSIG(status) == SIGTRAP && !is_event) {
      *reached = true;
      return;
    }
    ptrace(PTRACE_CONT, worker, nullptr, is_event ? 0 : WSTOPSIG(status));
  }
  if (WIFSIGNALED(status) && WTERMSIG(status) == SIGTRAP) *reached = true;
}

// Stops the worker, replaces one instruction by a breakpoint, and kills it when it gets there: all
// that stands before it was executed, and nothing behind it.
void KillAt(uint64_t instruction, const Way& way, bool* reached) {
  TracedProgram program(way.config);
  const pid_t worker =
      program.Start(way.threads, way.is_read ? 0 : way.events, std::string("p") + way.flags);
  ASSERT_NO_FATAL_FAILURE(SeizeStopped(worker, 0));
  const uint64_t address = LibraryBase(worker) + instruction;
  errno = 0;
  const long word = ptrace(PTRACE_PEEKTEXT, worker, address, nullptr);
  ASSERT_EQ(errno, 0);
  ASSERT_EQ(ptrace(PTRACE_POKETEXT, worker, address, (word & ~0xffL) | 0xcc), 0);
  kill(worker, SIGCONT);
  ptrace(PTRACE_CONT, worker, nullptr, 0);
  WaitForBreakpoint(worker, way.is_read, &program, reached);
  kill(worker, SIGKILL);
  const Books b = program.Finish(worker, true);
  if (way.config.has_room) {
    ExpectBalance(b, false);
  } else {
    EXPECT_EQ(b.ring_sets, 0U);
  }
  if (way.config.rseq_is_refused) {
    EXPECT_EQ(b.recorded_atomically, b.recorded);
  }
}

// Kills at each of these instructions, on all `ways` that lead there. If none does, it tries the
// rare ones, some of which need luck.
void KillAtEach(const std::vector<uint64_t>& instructions, const std::vector<Way>& ways,
                const std::vector<Way>& rare) {
  constexpr int kTries = 20;
  std::vector<uint64_t> unreached;
  for (const uint64_t at : instructions) {
    SCOPED_TRACE(at);
    bool reached = false;
    for (const Way& way : ways) ASSERT_NO_FATAL_FAILURE(KillAt(at, way, &reached));
    for (int i = 0; i < kTries && !reached; ++i) {
      for (size_t n = 0; n < rare.size() && !reached; ++n)
        ASSERT_NO_FATAL_FAILURE(KillAt(at, rare[n], &reached));
    }
    if (!reached) unreached.push_back(at);
    if (unreached.size() == 3) break;  // each takes long
  }
  EXPECT_THAT(unreached, testing::IsEmpty()) << "offsets in libweft.so that no way leads to";
}

TEST(Kill, AtEveryInstructionBoundaryOfTheSections) {
  const std::vector<uint16_t> contexts = {WEFT_CONTEXT_VPID, WEFT_CONTEXT_VTID};
  // No function is hooked here. What hooks write into a ring is the same text as in emit.c; their
  // other sections change lists of free stubs, which die with the process.
  const auto instructions = SectionInstructions(LibraryPath(), {"hook_fast.c", "hook_slow.c"});
  ASSERT_GT(instructions.size(), 100U);
  RecordProperty("instructions", static_cast<int>(instructions.size()));
  KillAtEach(
      instructions,
      {{.config = {.mode = WEFT_RING_DISCARD}},
       {.config = {.mode = WEFT_RING_OVERWRITE}},
       {.config = {.mode = WEFT_RING_OVERWRITE, .clock = WEFT_CLOCK_MONOTONIC}}},
      {{.config = {.extra_environment = kCpuSlots}},
       {.config = {.extra_environment = kMmCidSlots}},
       {.config = {.extra_environment = kCpuSlots, .contexts = contexts}},
       {.config = {.extra_environment = kMmCidSlots, .contexts = contexts}},
       {.config = {}, .is_read = true}});  // a sub-buffer that was read, and is written to again
}

TEST(Kill, AtEveryInstructionBoundaryOfTheAtomicSlot) {
  const std::vector<std::string> without = {
      "&asked",  // in valgrind, for the CPU
      // An owner does not get on for a second; it comes back after all.
      "return weft_atomic_give_up(ring, slot, owner, head);",
      "__atomic_store_n(&ring->stuck_owner, 0, __ATOMIC_RELAXED);",
      // Another thread made the ring set since this one, a few instructions ago, could not.
      "weft_ring_set_count_pending(channel);",
  };
  const auto instructions = FunctionInstructions(
      LibraryPath(), {"weft_write_atomically", "discard", "now_cycles"}, without);
  ASSERT_GT(instructions.size(), 100U);
  RecordProperty("instructions", static_cast<int>(instructions.size()));
  constexpr uint64_t kMany = 20000;
  const TracedProgramConfig refused = {.rseq_is_refused = true};
  KillAtEach(instructions,
             {{.config = refused},
              {.config = {.mode = WEFT_RING_OVERWRITE, .rseq_is_refused = true}},
              {.config = refused, .threads = 4, .flags = "wts"}},
             {{.config = {}},
              {.config = {.clock = WEFT_CLOCK_MONOTONIC, .rseq_is_refused = true}},
              {.config = {.extra_environment = kOwnRseq}},
              {.config = {.has_room = false}},
              {.config = {}, .flags = "tm"},
              {.config = {}, .flags = "tmx"},
              {.config = {}, .flags = "tmk", .events = kMany},
              {.config = refused, .threads = 4, .flags = "wtsn", .events = kMany},
              {.config = refused, .is_read = true}});
}

}  // namespace
}  // namespace weft::kill_test
