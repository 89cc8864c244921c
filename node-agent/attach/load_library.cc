// SPDX-License-Identifier: Apache-2.0
// See load_library.h.
#include "node-agent/attach/load_library.h"

#include <fcntl.h>
#include <linux/prctl.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <fstream>
#include <iterator>
#include <thread>
#include <vector>

#include "lib/base/kill_point.h"
#include "lib/base/unique_fd.h"
#include "node-agent/attach/annex.h"
#include "node-agent/attach/emergency_frame.h"
#include "node-agent/attach/hijacked_thread.h"
#include "node-agent/attach/library_image.h"
#include "node-agent/attach/limits.h"
#include "node-agent/attach/provider_object.h"
#include "node-agent/attach/target_check.h"
#include "node-agent/hooks/code_change.h"
#include "node-agent/hooks/give_back.h"
#include "node-agent/hooks/process_memory.h"
#include "node-agent/hooks/replace_functions.h"
#include "node-agent/hooks/stopped_process.h"

namespace weft::attach {
namespace {

constexpr char kMemfdName[] = "libweft.so";
static_assert(sizeof(kMemfdName) <= kFrameScratchBytes);

Result<LibraryImage> ReadLibrary(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  if (!in) return FailErrno(path);
  std::vector<uint8_t> bytes((std::istreambuf_iterator<char>(in)),
                             std::istreambuf_iterator<char>());
  auto image = LibraryImage::Parse(std::move(bytes));
  if (!image) return std::unexpected(std::move(image).error().Context(path));
  return image;
}

// Locks /proc/PID, so that of two agents that find no library the second one waits. The kernel
// keeps one inode for it while any agent that sees the same mount of proc has it open. For agents
// that see others see LoadStopped.
Result<UniqueFd> LockProcess(int32_t pid) {
  const std::string path = "/proc/" + std::to_string(pid);
  UniqueFd folder(open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!folder && (errno == ENOENT || errno == ESRCH))
    return Fail(ErrorCode::kNotFound, "the process does not exist");
  if (!folder) return FailErrno(path);
  const auto end = std::chrono::steady_clock::now() + kLockPatience;
  while (flock(folder.get(), LOCK_EX | LOCK_NB) != 0) {
    if (std::chrono::steady_clock::now() >= end)
      return Fail(ErrorCode::kTimeout,
                  "another weft agent is loading libweft.so into it: try again");
    std::this_thread::sleep_for(kBeginPause);
  }
  return folder;
}

// Waits for the C library of a program that has just begun: its loader alone has no such code.
Result<Gates> WaitForGates(const hooks::ProcessMemory& memory) {
  const auto end = std::chrono::steady_clock::now() + kBeginPatience;
  for (;;) {
    WEFT_ASSIGN(const std::vector<hooks::MappedRange> ranges, hooks::ReadRanges(memory.pid()));
    auto gates = SearchGates(memory, ranges);
    if (gates || std::chrono::steady_clock::now() > end) return gates;
    std::this_thread::sleep_for(kBeginPause);
  }
}

// The thread that is used: the first that stops, beginning with the main one.
Result<HijackedThread> TakeThread(const hooks::ProcessMemory& memory, const Gates& gates,
                                  const Target& target) {
  std::vector<int32_t> tids = hooks::ThreadsOf(memory.pid());
  if (const auto main = std::ranges::find(tids, memory.pid()); main != tids.end())
    std::swap(*main, tids.front());
  Error why{ErrorCode::kNotFound, 0, "the process ended meanwhile"};
  const auto end = std::chrono::steady_clock::now() + kTakePatience;
  for (const int32_t tid : tids) {
    auto thread = HijackedThread::Take(memory, target, tid, gates);
    if (thread || thread.error().code == ErrorCode::kPermission) return thread;
    why = std::move(thread.error());
    if (std::chrono::steady_clock::now() >= end) break;
  }
  return std::unexpected(std::move(why));
}

// An object of the process that has tracepoints.
struct Provider {
  uint64_t base = 0;
  ProviderObject object;
};

std::vector<Provider> FindProviders(const hooks::ProcessMemory& memory,
                                    const std::vector<hooks::MappedRange>& ranges) {
  std::vector<Provider> providers;
  size_t searched = 0;
  for (const hooks::LoadedObject& object : hooks::ObjectsOf(ranges)) {
    if (providers.size() == kMaxObjects || ++searched > kMaxSearchedObjects) break;
    const auto file = memory.OpenObject(object);
    if (!file) continue;
    const auto found = FindProviderObject(file->get());
    if (found && *found) providers.push_back({.base = object.begin, .object = **found});
  }
  return providers;
}

// The library reads the time stamp counter at each event. Each thread has a mode of its own, which
// it has from the one that made it; the thread in hand stands for all.
Status CheckClock(const hooks::ProcessMemory& memory, HijackedThread& thread) {
  uint32_t mode = 0;
  WEFT_TRY(thread.Call("prctl", SYS_prctl, {PR_GET_TSC, thread.scratch()}));
  if (memory.Read(thread.scratch(), &mode, sizeof(mode)) && mode == PR_TSC_SIGSEGV)
    return Fail(ErrorCode::kUnsupported,
                "it ends when the time stamp counter is read (PR_SET_TSC), so it could not record");
  return {};
}

// Loads into one process, with one thread of it in hand.
class Loader {
 public:
  Loader(const hooks::ProcessMemory& memory, const Target& target, const LoadOptions& options,
         const LibraryImage& image, HijackedThread& thread)
      : memory_(memory), target_(target), options_(options), image_(image), thread_(thread) {}

  Status Load() {
    Status mapped = Map();
    if (!mapped) {
      if (base_ != 0) (void)thread_.Call("munmap", SYS_munmap, {base_, bytes_});
      return mapped;
    }
    WEFT_ASSIGN(stack_, thread_.Call("mmap", SYS_mmap,
                                     {0, kStackBytes, PROT_READ | PROT_WRITE,
                                      MAP_PRIVATE | MAP_ANONYMOUS, UINT64_MAX, 0}));
    for (const uint64_t constructor : constructors_) {
      KillPoint("constructor");
      WEFT_TRY(Run(constructor, 0));
    }
    return {};
  }

  Status Register(const std::vector<Provider>& providers) {
    WEFT_ASSIGN(const uint64_t offset, image_.SymbolOffset("weft_object_register"));
    uint64_t list = data_;
    for (const Provider& provider : providers) {
      const ProviderObject& of = provider.object;
      const uint64_t address = provider.base + of.object;
      weft_object now{};
      // It is registered already, or another file is mapped here by now. The library's constructor
      // has set `library` of the program's own.
      if (!memory_.Read(address, &now, sizeof(now)) || now.size != 0) continue;
      const uint64_t arguments[2] = {provider.base + of.arguments,
                                     provider.base + of.arguments + of.argument_bytes};
      WEFT_TRY(memory_.Write(list, hooks::AsBytes(arguments)));
      const weft_object object = MakeObject(of, provider.base, of.argument_bytes != 0 ? list : 0);
      list += sizeof(arguments);
      WEFT_TRY(memory_.Write(address, hooks::AsBytes(object)));
      WEFT_TRY(Run(base_ + offset, address));
    }
    return {};
  }

  // Call it at the end.
  void FreeStack() {
    if (stack_ != 0) (void)thread_.Call("munmap", SYS_munmap, {stack_, kStackBytes});
  }

 private:
  Status Map() {
    const AnnexContent content{.folder = options_.folder,
                               .container = options_.container,
                               .auxiliary = target_.auxiliary,
                               .rseq_offset = thread_.rseq_offset(),
                               .is_go = target_.is_go};
    const uint64_t annex_bytes = MakeAnnex(0, content).bytes.size();
    // The library, the annex, and a page of data.
    bytes_ = image_.span() + annex_bytes + kPageBytes;
    WEFT_ASSIGN(base_, thread_.Call("mmap", SYS_mmap,
                                    {0, bytes_, PROT_NONE,
                                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, UINT64_MAX, 0}));
    annex_ = MakeAnnex(base_ + image_.span(), content);
    data_ = base_ + image_.span() + annex_bytes;
    WEFT_TRY(memory_.Write(thread_.scratch(), hooks::AsBytes(kMemfdName)));
    WEFT_ASSIGN(const uint64_t fd,
                thread_.Call("memfd_create", SYS_memfd_create, {thread_.scratch(), MFD_CLOEXEC}));
    const Status mapped = MapFile(fd);
    (void)thread_.Call("close", SYS_close, {fd});
    WEFT_TRY(mapped);
    WEFT_TRY(thread_.Call("mprotect", SYS_mprotect, {data_, kPageBytes, PROT_READ | PROT_WRITE}));
    return Relocate();
  }

  Status MapFile(uint64_t fd) {
    const uint64_t annex_at = PageUp(image_.file().size());
    WEFT_TRY(WriteFile(fd, annex_at));
    for (const LibrarySegment& segment : image_.segments()) WEFT_TRY(MapSegment(fd, segment));
    return MapAt(base_ + image_.span(), annex_.bytes.size(), PROT_READ | PROT_EXEC, MAP_PRIVATE, fd,
                 annex_at);
  }

  // The pages of a file count for the control group of the process in whose memory they come up,
  // or of the one that writes them through a descriptor. So they are written in the process's
  // memory: it could otherwise let the agent's memory grow, since it may keep each file.
  Status WriteFile(uint64_t fd, uint64_t annex_at) {
    const uint64_t bytes = annex_at + annex_.bytes.size();
    WEFT_ASSIGN(const UniqueFd file, OpenNewMemfd(target_.pid, thread_.tid(), fd));
    // In the process, a limit of its own could end it (RLIMIT_FSIZE).
    if (ftruncate(file.get(), static_cast<off_t>(bytes)) != 0)
      return FailErrno("memory for libweft.so");
    WEFT_ASSIGN(
        const uint64_t at,
        thread_.Call("mmap", SYS_mmap, {0, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0}));
    Status written = memory_.Write(at, image_.file());
    if (written) written = memory_.Write(at + annex_at, annex_.bytes);
    (void)thread_.Call("munmap", SYS_munmap, {at, bytes});
    return written;
  }

  Status MapSegment(uint64_t fd, const LibrarySegment& s) {
    const uint64_t file_end = PageUp(s.file_bytes), end = PageUp(s.memory_bytes);
    if (file_end != 0)
      WEFT_TRY(MapAt(base_ + s.address, file_end, s.protection, MAP_PRIVATE, fd, s.offset));
    if (end > file_end)
      WEFT_TRY(MapAt(base_ + s.address + file_end, end - file_end, s.protection,
                     MAP_PRIVATE | MAP_ANONYMOUS, UINT64_MAX, 0));
    // What follows in the file is not the segment's.
    if ((s.protection & PROT_WRITE) == 0 || s.file_bytes == file_end) return {};
    const std::vector<uint8_t> zero(file_end - s.file_bytes);
    return memory_.Write(base_ + s.address + s.file_bytes, zero);
  }

  Status MapAt(uint64_t address, uint64_t bytes, int protection, int flags, uint64_t fd,
               uint64_t offset) {
    WEFT_TRY(thread_.Call("mmap", SYS_mmap,
                          {address, bytes, static_cast<uint64_t>(protection),
                           static_cast<uint64_t>(flags | MAP_FIXED), fd, offset}));
    return {};
  }

  Status Relocate() {
    WEFT_ASSIGN(const std::vector<RelocatedWord> words, image_.Relocate(base_, annex_.symbols));
    for (const RelocatedWord& word : words)
      WEFT_TRY(memory_.Write(word.address, hooks::AsBytes(word.value)));
    constructors_ = image_.Constructors(base_, words);
    return {};
  }

  Status Run(uint64_t function, uint64_t argument) {
    return thread_.Run(annex_.trampoline, function, stack_ + kStackBytes, {argument, 0, 0});
  }

  const hooks::ProcessMemory& memory_;
  const Target& target_;
  const LoadOptions& options_;
  const LibraryImage& image_;
  HijackedThread& thread_;
  uint64_t base_ = 0;
  uint64_t bytes_ = 0;
  uint64_t data_ = 0;
  uint64_t stack_ = 0;
  Annex annex_;
  std::vector<uint64_t> constructors_;
};

Status LoadStopped(const hooks::ProcessMemory& memory, const Target& target,
                   const LoadOptions& options, const LibraryImage& image, const Gates& gates,
                   const std::vector<Provider>& providers, StopTime& stopped) {
  const auto begin = std::chrono::steady_clock::now();
  WEFT_ASSIGN(HijackedThread thread, TakeThread(memory, gates, target));
  // An agent holds the thread that it uses, which is the first one that stops. So one that sees
  // another mount of proc, and loads at this moment, too, has ended or is refused.
  WEFT_ASSIGN(const bool is_there, HasLibrary(target.pid));
  if (is_there)
    return Fail(ErrorCode::kTimeout,
                "another weft agent has just loaded libweft.so into it: try again");
  Loader loader(memory, target, options, image, thread);
  Status status = CheckClock(memory, thread);
  if (status) status = loader.Load();
  if (status) status = loader.Register(providers);
  loader.FreeStack();
  const Status released = thread.Release();
  stopped += std::chrono::steady_clock::now() - begin;
  return status ? released : status;
}

// A library that another recording left does not know what the program has forbidden since then.
Status CheckAgain(const Target& target) {
  WEFT_ASSIGN(const hooks::ProcessMemory memory, hooks::ProcessMemory::Open(target.pid));
  WEFT_ASSIGN(const Gates gates, WaitForGates(memory));
  Status status;
  hooks::InThreadOfItsOwn([&] {
    auto thread = TakeThread(memory, gates, target);
    status = thread ? CheckClock(memory, *thread) : Status(std::unexpected(thread.error()));
    const Status released = thread ? thread->Release() : Status();
    if (status) status = released;
  });
  return status;
}

Status Wake(const Target& target, StopTime& stopped) {
  WEFT_TRY(CheckTracer(target));
  // Its parent is woken itself.
  if (hooks::IsOnParentsMemory(target.pid)) return {};
  // From here on the library sees what the program forbids.
  WEFT_TRY(hooks::ReplaceFunctions(target.pid, stopped));
  WEFT_TRY(CheckAgain(target));
  WEFT_ASSIGN(const bool has_filter, HasFilter(target.pid));
  return hooks::WakeLibrary(target.pid, has_filter);
}

// All files are read before a thread is stopped.
Status Load(const Target& target, const LoadOptions& options, StopTime& stopped) {
  const int32_t pid = target.pid;
  WEFT_ASSIGN(const LibraryImage image, ReadLibrary(options.library));
  const auto memory = hooks::ProcessMemory::Open(pid);
  if (!memory)
    return Fail(ErrorCode::kPermission,
                "weft may not write its memory (" + memory.error().message + ")");
  WEFT_ASSIGN(const Gates gates, WaitForGates(*memory));
  WEFT_ASSIGN(const std::vector<hooks::MappedRange> ranges, hooks::ReadRanges(pid));
  const std::vector<Provider> providers = FindProviders(*memory, ranges);
  Status status;
  hooks::InThreadOfItsOwn(
      [&] { status = LoadStopped(*memory, target, options, image, gates, providers, stopped); });
  return status;
}

}  // namespace

Status LoadLibrary(int32_t pid, const LoadOptions& options) {
  StopTime stopped{};
  return LoadLibrary(pid, options, stopped);
}

Status LoadLibrary(int32_t pid, const LoadOptions& options, StopTime& stopped) {
  WEFT_ASSIGN(const UniqueFd lock, LockProcess(pid));
  WEFT_ASSIGN(Target target, CheckTarget(pid));
  target.is_meant = options.is_meant;
  if (!target.has_library) {
    WEFT_TRY(Load(target, options, stopped));
  } else if (const auto detached = hooks::IsDetached(pid); detached && *detached) {
    return Wake(target, stopped);
  } else if (!detached && detached.error().code == ErrorCode::kTimeout) {
    return std::unexpected(detached.error());
  }
  KillPoint("library_loaded");
  // Where this fails, exits are refused, and filters that the program makes later are not seen,
  // until a later call.
  (void)hooks::ReplaceFunctions(pid, stopped);
  return {};
}

std::string OwnLibrary() {
  char path[4096];
  const ssize_t size = readlink("/proc/self/exe", path, sizeof(path));
  const std::string self(path, size > 0 ? static_cast<size_t>(size) : 0);
  const std::string bin = self.substr(0, self.rfind('/'));
  return bin.substr(0, bin.rfind('/') + 1) + "lib/libweft.so";
}

}  // namespace weft::attach
