// SPDX-License-Identifier: Apache-2.0
// Tests what loading a library prepares before it touches a process.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/ptrace.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <memory>
#include <thread>

#include "lib/abi/control.h"
#include "lib/base/unique_fd.h"
#include "node-agent/attach/annex.h"
#include "node-agent/attach/emergency_frame.h"
#include "node-agent/attach/filter_check.h"
#include "node-agent/attach/hijacked_thread.h"
#include "node-agent/attach/library_image.h"
#include "node-agent/attach/limits.h"
#include "node-agent/attach/load_library.h"
#include "node-agent/attach/provider_object.h"
#include "node-agent/attach/target_check.h"
#include "node-agent/hooks/give_back.h"
#include "node-agent/hooks/hook_service.h"
#include "node-agent/hooks/hook_table.h"
#include "node-agent/hooks/process_claim.h"
#include "node-agent/hooks/process_memory.h"
#include "node-agent/hooks/stopped_process.h"

namespace weft::attach {
namespace {

std::vector<uint8_t> ReadAll(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
}

#ifdef WEFT_LIBRARY
constexpr uint64_t kBase = 0x7000'0000'0000;

TEST(LibraryImage, SegmentsCoverTheFileInOrder) {
  const auto image = LibraryImage::Parse(ReadAll(WEFT_LIBRARY));
  ASSERT_TRUE(image) << image.error().message;
  uint64_t end = 0;
  for (const LibrarySegment& s : image->segments()) {
    EXPECT_GE(s.address, end);
    EXPECT_EQ(s.address % kPageBytes, 0u);
    EXPECT_LE(s.offset + s.file_bytes, image->file().size());
    EXPECT_NE(s.protection & (PROT_WRITE | PROT_EXEC), PROT_WRITE | PROT_EXEC);
    end = s.address + s.memory_bytes;
  }
  EXPECT_EQ(image->span(), (end + kPageBytes - 1) / kPageBytes * kPageBytes);
}

TEST(LibraryImage, WordsLieInWritableSegments) {
  const auto image = LibraryImage::Parse(ReadAll(WEFT_LIBRARY));
  ASSERT_TRUE(image);
  const auto words = image->Relocate(kBase, {});
  ASSERT_TRUE(words) << words.error().message;
  EXPECT_FALSE(words->empty());
  for (const RelocatedWord& word : *words)
    EXPECT_TRUE(std::ranges::any_of(image->segments(), [&](const LibrarySegment& s) {
      const uint64_t begin = kBase + s.address;
      return (s.protection & PROT_WRITE) != 0 && word.address >= begin &&
             word.address + 8 <= begin + s.memory_bytes;
    }));
}

TEST(LibraryImage, GivesSymbolsThatTheLibraryAsksFor) {
  const auto image = LibraryImage::Parse(ReadAll(WEFT_LIBRARY));
  ASSERT_TRUE(image);
  const auto without = image->Relocate(kBase, {});
  const auto with = image->Relocate(kBase, {{"getauxval", 0x1234}});
  ASSERT_TRUE(without && with);
  ASSERT_EQ(without->size(), with->size());
  int given = 0;
  for (size_t i = 0; i < with->size(); ++i)
    if ((*with)[i] != (*without)[i]) {
      EXPECT_EQ((*with)[i].value, 0x1234u);
      EXPECT_EQ((*without)[i].value, 0u);
      ++given;
    }
  EXPECT_GE(given, 1);
}

TEST(LibraryImage, ConstructorsAreItsOwnCode) {
  const auto image = LibraryImage::Parse(ReadAll(WEFT_LIBRARY));
  ASSERT_TRUE(image);
  const auto words = image->Relocate(kBase, {});
  ASSERT_TRUE(words);
  const std::vector<uint64_t> constructors = image->Constructors(kBase, *words);
  EXPECT_GE(constructors.size(), 2u);
  for (const uint64_t function : constructors)
    EXPECT_TRUE(std::ranges::any_of(image->segments(), [&](const LibrarySegment& s) {
      return (s.protection & PROT_EXEC) != 0 && function - kBase - s.address < s.memory_bytes;
    }));
}

TEST(LibraryImage, FindsItsSymbols) {
  const auto image = LibraryImage::Parse(ReadAll(WEFT_LIBRARY));
  ASSERT_TRUE(image);
  EXPECT_TRUE(image->SymbolOffset("weft_object_register"));
  EXPECT_FALSE(image->SymbolOffset("weft_no_such_symbol"));
}

TEST(LibraryImage, RefusesDamagedFiles) {
  const std::vector<uint8_t> whole = ReadAll(WEFT_LIBRARY);
  EXPECT_FALSE(LibraryImage::Parse({}));
  for (const size_t size : {size_t{64}, size_t{4096}, whole.size() / 2})
    EXPECT_FALSE(LibraryImage::Parse({whole.begin(), whole.begin() + static_cast<ptrdiff_t>(size)}))
        << size;
  // Any single byte of the headers may be anything: nothing is read outside the file.
  for (size_t at = 0; at < 1024; ++at) {
    std::vector<uint8_t> damaged = whole;
    damaged[at] ^= 0xff;
    const auto image = LibraryImage::Parse(std::move(damaged));
    if (!image) continue;
    const auto words = image->Relocate(kBase, {});
    if (words) (void)image->Constructors(kBase, *words);
    (void)image->SymbolOffset("weft_object_register");
  }
}
#endif

TEST(ProviderObject, IsThatOfTheFile) {
  const std::string self = "/proc/self/exe";
  const int file = open(self.c_str(), O_RDONLY | O_CLOEXEC);
  ASSERT_GE(file, 0);
  const auto none = FindProviderObject(file);
  close(file);
  ASSERT_TRUE(none);
  EXPECT_FALSE(*none);
}

TEST(Annex, GivesAuxiliaryValuesAndEnvironment) {
  const std::vector<uint8_t> auxiliary = ReadAll("/proc/self/auxv");
  const AnnexContent content{
      .folder = "/folder", .container = "name", .auxiliary = auxiliary, .rseq_offset = -64};
  const size_t bytes = MakeAnnex(0, content).bytes.size();
  void* memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(memory, MAP_FAILED);
  const Annex annex = MakeAnnex(reinterpret_cast<uint64_t>(memory), content);
  ASSERT_EQ(annex.bytes.size(), bytes);
  std::memcpy(memory, annex.bytes.data(), bytes);
  ASSERT_EQ(mprotect(memory, bytes, PROT_READ | PROT_EXEC), 0);

  const auto get =
      reinterpret_cast<unsigned long (*)(unsigned long)>(annex.symbols.at("getauxval"));
  for (const unsigned long type : {AT_PHDR, AT_PHNUM, AT_PAGESZ, AT_SECURE, AT_SYSINFO_EHDR})
    EXPECT_EQ(get(type), getauxval(type)) << type;
  EXPECT_EQ(get(123456), 0u);

  const auto* start =
      *reinterpret_cast<const uint64_t* const*>(annex.symbols.at("__libc_stack_end"));
  EXPECT_EQ(start[0], 0u);
  EXPECT_EQ(start[1], 0u);
  EXPECT_STREQ(reinterpret_cast<const char*>(start[2]), "WEFT_DIR=/folder");
  EXPECT_STREQ(reinterpret_cast<const char*>(start[3]), "WEFT_CONTAINER=name");
  EXPECT_STREQ(reinterpret_cast<const char*>(start[4]), "WEFT_ATTACHED=1");
  EXPECT_EQ(start[5], 0u);
  EXPECT_EQ(*reinterpret_cast<const int64_t*>(annex.symbols.at("__rseq_offset")), -64);
  munmap(memory, bytes);
}

TEST(Annex, HasNoRseqWhereThereIsNone) {
  const Annex annex =
      MakeAnnex(0, {.folder = "/", .container = "", .auxiliary = {}, .rseq_offset = {}});
  EXPECT_FALSE(annex.symbols.contains("__rseq_size"));
}

TEST(AtTheCall, GoesBackOnlyToCallsThatAreMadeAgain) {
  ThreadState state;
  state.registers.rip = 1000;
  state.registers.orig_rax = 7;
  for (const int64_t again : {-512, -513, -514, -516}) {
    state.registers.rax = static_cast<uint64_t>(again);
    const ThreadState at = AtTheCall(state);
    EXPECT_EQ(at.registers.rip, 998u);
    EXPECT_EQ(at.registers.rax, 7u);
  }
  for (const int64_t result : {int64_t{0}, int64_t{-4}, int64_t{5}}) {
    state.registers.rax = static_cast<uint64_t>(result);
    EXPECT_EQ(AtTheCall(state).registers.rip, 1000u);
  }
  state.registers.orig_rax = UINT64_MAX;
  state.registers.rax = static_cast<uint64_t>(-512);
  EXPECT_EQ(AtTheCall(state).registers.rip, 1000u);
}

TEST(FindGates, FindsCodeAtAnyPlace) {
  std::vector<uint8_t> code(64, 0x90);
  const std::array<uint8_t, 3> call{0x0f, 0x05, 0xc3};
  const std::array<uint8_t, 9> restorer{0x48, 0xc7, 0xc0, 15, 0, 0, 0, 0x0f, 0x05};
  Gates gates;
  FindGates(4096, code, gates);
  EXPECT_EQ(gates.call, 0u);
  std::ranges::copy(call, code.begin() + 5);
  std::ranges::copy(restorer, code.end() - 9);
  FindGates(4096, code, gates);
  EXPECT_EQ(gates.call, 4096u + 5);
  EXPECT_EQ(gates.restorer, 4096u + 64 - 9);
  FindGates(8192, code, gates);  // the first ones stay
  EXPECT_EQ(gates.call, 4096u + 5);
}

TEST(EmergencyFrame, LiesBelowTheRedZone) {
  ThreadState state;
  state.registers.rsp = 0x7fff'0000'1238;
  state.fpu.resize(2696);
  const auto frame = MakeEmergencyFrame(state, state.registers.rsp, 0x1234);
  ASSERT_TRUE(frame) << frame.error().message;
  EXPECT_LE(frame->scratch + kFrameScratchBytes, state.registers.rsp - 128);
  EXPECT_LE(frame->address + frame->bytes.size(), state.registers.rsp - 128);
  EXPECT_LE(frame->address + sizeof(uint64_t) + sizeof(ucontext_t), frame->scratch);
  uint64_t returns_to = 0;
  std::memcpy(&returns_to, frame->bytes.data(), sizeof(returns_to));
  EXPECT_EQ(returns_to, 0x1234u);
}

TEST(EmergencyFrame, RefusesRegistersThatAreNotKnown) {
  ThreadState state;
  state.registers.rsp = 0x7fff'0000'1238;
  EXPECT_FALSE(MakeEmergencyFrame(state, state.registers.rsp, 1));
  state.fpu.assign(2696, 0xff);
  EXPECT_FALSE(MakeEmergencyFrame(state, state.registers.rsp, 1));
  state.fpu.assign(2696, 0);
  state.registers.rsp = 64;
  EXPECT_FALSE(MakeEmergencyFrame(state, state.registers.rsp, 1));
}

TEST(ParseStatus, ReadsWhatItKnows) {
  const ProcessStatus status = ParseStatus(
      "Name:\tState:\tZ\nState:\tS (sleeping)\nPPid:\t12\nTracerPid:\t34\nSeccomp:\t2\n"
      "Seccomp_filters:\t1\nx86_Thread_features:\tshstk wrss \n");
  EXPECT_EQ(status.state, 'S');
  EXPECT_EQ(status.parent, 12);
  EXPECT_EQ(status.tracer, 34);
  EXPECT_EQ(status.seccomp, 2);
  EXPECT_TRUE(status.has_shadow_stack);
  EXPECT_EQ(ParseStatus("").state, '?');
}

TEST(CheckTarget, TellsWhyNothingCanBeLoaded) {
  const auto none = CheckTarget(INT32_MAX);
  ASSERT_FALSE(none);
  EXPECT_EQ(none.error().code, ErrorCode::kNotFound);
  const pid_t child = fork();
  if (child == 0) _exit(0);
  siginfo_t info{};
  ASSERT_EQ(waitid(P_PID, static_cast<id_t>(child), &info, WEXITED | WNOWAIT), 0);
  const auto zombie = CheckTarget(child);
  ASSERT_FALSE(zombie);
  EXPECT_EQ(zombie.error().code, ErrorCode::kUnsupported);
  waitpid(child, nullptr, 0);
}

TEST(CheckThread, RefusesThreadsOfOtherProcessesAndPrograms) {
  const auto target = CheckTarget(getpid());
  ASSERT_TRUE(target) << target.error().message;
  EXPECT_TRUE(CheckThread(*target, getpid()));
  EXPECT_EQ(CheckThread(*target, INT32_MAX).error().code, ErrorCode::kNotFound);
  Target other = *target;
  other.auxiliary.back() ^= 1;
  EXPECT_EQ(CheckThread(other, getpid()).error().code, ErrorCode::kNotFound);
}

// A tenant that puts a file in the place of its memfd wants it to be written by this process.
TEST(OpenNewMemfd, OpensNothingElse) {
  const auto open_it = [](const UniqueFd& fd) {
    return OpenNewMemfd(getpid(), getpid(), static_cast<uint64_t>(fd.get()));
  };
  const UniqueFd memory(memfd_create("new", MFD_CLOEXEC));
  const auto opened = open_it(memory);
  ASSERT_TRUE(opened) << opened.error().message;
  EXPECT_EQ(pwrite(opened->get(), "abc", 3, 0), 3);
  EXPECT_EQ(open_it(memory).error().code, ErrorCode::kPermission);  // it is not empty now

  std::string path = testing::TempDir() + "weft_attach_XXXXXX";
  UniqueFd file(mkstemp(path.data()));
  ASSERT_TRUE(file);
  EXPECT_EQ(open_it(file).error().code, ErrorCode::kPermission);
  ASSERT_EQ(unlink(path.c_str()), 0);
  EXPECT_EQ(open_it(file).error().code, ErrorCode::kPermission);
  int pipe_fds[2];
  ASSERT_EQ(pipe2(pipe_fds, O_CLOEXEC), 0);
  const UniqueFd reads(pipe_fds[0]), writes(pipe_fds[1]);
  EXPECT_EQ(open_it(reads).error().code, ErrorCode::kPermission);
  const UniqueFd device(open("/dev/null", O_RDONLY | O_CLOEXEC));
  EXPECT_EQ(open_it(device).error().code, ErrorCode::kPermission);
  EXPECT_FALSE(OpenNewMemfd(getpid(), getpid(), UINT64_MAX));
}

// Allows all calls but one.
std::vector<sock_filter> FilterOf(uint32_t call, uint32_t action) {
  return {BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
          BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, call, 0, 1), BPF_STMT(BPF_RET | BPF_K, action),
          BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)};
}

TEST(CheckFilter, RefusesFiltersThatKill) {
  EXPECT_TRUE(CheckFilter(FilterOf(SYS_mprotect, SECCOMP_RET_ALLOW)));
  EXPECT_TRUE(CheckFilter(FilterOf(SYS_mprotect, SECCOMP_RET_ERRNO | EPERM)));
  EXPECT_EQ(CheckFilter(FilterOf(SYS_mprotect, SECCOMP_RET_KILL_PROCESS)).error().code,
            ErrorCode::kUnsupported);
}

TEST(CheckFilter, EndsUnderAFilterThatLetsNoProcessEnd) {
  EXPECT_TRUE(CheckFilter(FilterOf(SYS_exit_group, SECCOMP_RET_ERRNO | EPERM)));
}

// A child, stopped, that a test hands to HijackedThread: it executes a program when it goes on.
struct Executing {
  pid_t pid = fork();
  Executing() {
    if (pid != 0) return;
    for (;;) pause();
  }
  ~Executing() {
    (void)kill(pid, SIGKILL);
    (void)waitpid(pid, nullptr, 0);
  }
};

// The call that executes a program stands for a tenant's own code at the place of the gate.
TEST(HijackedThread, LeavesAThreadAloneThatExecutesAProgram) {
  const Executing child;
  ASSERT_GT(child.pid, 0);
  const auto target = CheckTarget(child.pid);
  ASSERT_TRUE(target) << target.error().message;
  const auto memory = hooks::ProcessMemory::Open(child.pid);
  ASSERT_TRUE(memory) << memory.error().message;
  const auto ranges = hooks::ReadRanges(child.pid);
  ASSERT_TRUE(ranges);
  const auto gates = SearchGates(*memory, *ranges);
  ASSERT_TRUE(gates) << gates.error().message;
  // The child has the same memory.
  static const char program[] = "/bin/sleep";
  static const char duration[] = "1000";
  static const char* const arguments[] = {program, duration, nullptr};
  Status executed, then, released;
  hooks::InThreadOfItsOwn([&] {
    auto thread = HijackedThread::Take(*memory, *target, child.pid, *gates);
    if (!thread) {
      executed = std::unexpected(thread.error());
      return;
    }
    const auto of = [](const void* value) { return reinterpret_cast<uint64_t>(value); };
    const auto call = thread->Call("execve", SYS_execve, {of(program), of(arguments), 0, 0, 0, 0});
    executed = call ? Status() : std::unexpected(call.error());
    const auto more = thread->Call("getpid", SYS_getpid, {});
    then = more ? Status() : std::unexpected(more.error());
    released = thread->Release();
  });
  ASSERT_FALSE(executed);
  EXPECT_EQ(executed.error().code, ErrorCode::kNotFound) << executed.error().message;
  EXPECT_NE(executed.error().message.find("executed another program"), std::string::npos)
      << executed.error().message;
  EXPECT_FALSE(then);
  EXPECT_TRUE(released);
  // It sleeps: it was not led elsewhere.
  const std::string path = "/proc/" + std::to_string(child.pid) + "/comm";
  const std::vector<uint8_t> name = ReadAll(path);
  EXPECT_EQ(std::string(name.begin(), name.end()), "sleep\n");
  siginfo_t info{};
  EXPECT_EQ(waitid(P_PID, static_cast<id_t>(child.pid), &info, WEXITED | WNOHANG | WNOWAIT), 0);
  EXPECT_EQ(info.si_pid, 0);
}

#ifdef WEFT_LIBRARY
// Two agents do not know of each other.
TEST(LoadLibrary, LoadsOneOfTwoThatComeAtOnce) {
  const Executing child;
  ASSERT_GT(child.pid, 0);
  const auto load = [&] {
    const Status loaded = LoadLibrary(
        child.pid, {.library = WEFT_LIBRARY, .folder = "/.weft-attached", .container = "attached"});
    EXPECT_TRUE(loaded || loaded.error().code == ErrorCode::kTimeout) << loaded.error().message;
  };
  std::thread other(load);
  load();
  other.join();
  const auto ranges = hooks::ReadRanges(child.pid);
  ASSERT_TRUE(ranges);
  EXPECT_EQ(std::ranges::count_if(hooks::ObjectsOf(*ranges), hooks::HookTable::IsLibrary), 1);
}

// Begins an agent that sees another mount of proc, and loads when a byte comes.
pid_t BeginBesideAnotherProc(int go, pid_t pid) {
  const pid_t other = fork();
  if (other != 0) return other;
  char byte = 0;
  const bool sees = read(go, &byte, 1) == 1 && unshare(CLONE_NEWNS) == 0 &&
                    mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0 &&
                    mount("proc", "/proc", "proc", 0, nullptr) == 0;
  const auto loaded = LoadLibrary(
      pid, {.library = WEFT_LIBRARY, .folder = "/.weft-attached", .container = "attached"});
  _exit(sees && loaded ? 0 : 1);
}

// The first one has looked at the process, and reads its library, when the second one loads.
TEST(LoadLibrary, LoadsOnceWhereTwoAgentsDoNotSeeEachOthersLock) {
  if (geteuid() != 0) GTEST_SKIP() << "needs root, to mount proc";
  const Executing child;
  ASSERT_GT(child.pid, 0);
  int go[2], status = 1;
  ASSERT_EQ(pipe(go), 0);
  const pid_t other = BeginBesideAnotherProc(go[0], child.pid);
  const std::string path = testing::TempDir() + "weft_attach_" + std::to_string(getpid());
  ASSERT_EQ(mkfifo(path.c_str(), 0600), 0);
  Status first;
  std::thread thread([&] {
    first = LoadLibrary(child.pid,
                        {.library = path, .folder = "/.weft-attached", .container = "attached"});
  });
  std::ofstream library(path, std::ios::binary);  // waits until it is read
  EXPECT_EQ(write(go[1], "g", 1), 1);
  EXPECT_EQ(waitpid(other, &status, 0), other);
  EXPECT_EQ(status, 0);
  const std::vector<uint8_t> bytes = ReadAll(WEFT_LIBRARY);
  library.write(reinterpret_cast<const char*>(bytes.data()),
                static_cast<std::streamsize>(bytes.size()));
  library.close();
  thread.join();
  (void)unlink(path.c_str());
  for (const int fd : go) close(fd);
  EXPECT_FALSE(first);
  EXPECT_EQ(first.error().code, ErrorCode::kTimeout) << first.error().message;
  const auto ranges = hooks::ReadRanges(child.pid);
  ASSERT_TRUE(ranges);
  EXPECT_EQ(std::ranges::count_if(hooks::ObjectsOf(*ranges), hooks::HookTable::IsLibrary), 1);
}

// A program with the library, in a container that is not recorded any more.
class GivingBack : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_GT(child_.pid, 0);
    const Status loaded = Load();
    ASSERT_TRUE(loaded) << loaded.error().message;
    const auto ranges = hooks::ReadRanges(child_.pid);
    ASSERT_TRUE(ranges);
    for (const hooks::MappedRange& range : *ranges)
      if (range.end - range.begin == WEFT_CONTROL_TOTAL_BYTES)
        container_.own_areas.insert(range.inode);
  }
  Status Load() const {
    return LoadLibrary(child_.pid, {.library = WEFT_LIBRARY,
                                    .folder = "/.weft-attached",
                                    .container = "attached",
                                    .is_meant = {}});
  }
  bool IsGivenBack() const { return hooks::IsDetached(child_.pid).value_or(false); }
  static void WaitUntilDone(const hooks::HookService& service) {
    while (!service.is_done()) usleep(1000);
  }

  const Executing child_;
  hooks::HookedContainer container_{.name = "", .control = "app.ctl", .gives_back = true};
};

// A load that was under way when the recording ended may wake the library only after that.
TEST_F(GivingBack, IsDoneAgainAfterALoadThatEndsLater) {
  hooks::HookService service;
  {
    const auto claim = hooks::ProcessClaim::Take(child_.pid);
    ASSERT_TRUE(claim);
    ASSERT_TRUE(service.SetContainers({container_}));
    while (!service.is_settled()) usleep(1000);
    EXPECT_FALSE(service.is_done()) << "it is tried again";
  }
  WaitUntilDone(service);
  EXPECT_TRUE(IsGivenBack());
  ASSERT_TRUE(Load());
  EXPECT_FALSE(IsGivenBack());
  service.LookAgain();
  WaitUntilDone(service);
  EXPECT_TRUE(IsGivenBack());
}

TEST_F(GivingBack, OfANodeNotesADebuggerAndWaitsForItsEnd) {
  int seized[2];
  ASSERT_EQ(pipe(seized), 0);
  const pid_t debugger = fork();
  if (debugger == 0) {
    const bool done = ptrace(PTRACE_SEIZE, child_.pid, nullptr, nullptr) == 0;
    (void)write(seized[1], done ? "y" : "n", 1);
    for (;;) pause();
  }
  char answer = 0;
  ASSERT_EQ(read(seized[0], &answer, 1), 1);
  EXPECT_EQ(answer, 'y');
  container_.name = "shop/app";
  container_.pod_uid = "pod";
  hooks::HookService service([&](int32_t pid) {
    return pid == child_.pid ? std::optional<std::string>("pod") : std::nullopt;
  });
  ASSERT_TRUE(service.SetContainers({container_}));
  std::vector<std::string> notes;
  while ((notes = service.TakeNotes()).empty()) usleep(1000);
  EXPECT_EQ(notes.size(), 1u);
  EXPECT_TRUE(notes[0].starts_with("shop/app: functions of process ")) << notes[0];
  EXPECT_FALSE(IsGivenBack());
  kill(debugger, SIGKILL);
  waitpid(debugger, nullptr, 0);
  WaitUntilDone(service);
  EXPECT_TRUE(IsGivenBack());
  EXPECT_TRUE(service.TakeNotes().empty());
  for (const int fd : seized) close(fd);
}
#endif

}  // namespace
}  // namespace weft::attach
