// SPDX-License-Identifier: Apache-2.0
// See target_check.h. proc(5).
#include "node-agent/attach/target_check.h"

#include <elf.h>
#include <fcntl.h>
#include <linux/seccomp.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <sstream>

#include "lib/base/processes.h"
#include "lib/base/unique_fd.h"
#include "lib/elf/elf_image.h"
#include "lib/elf/go_table.h"
#include "node-agent/attach/limits.h"
#include "node-agent/hooks/code_change.h"
#include "node-agent/hooks/hook_table.h"
#include "node-agent/hooks/process_memory.h"
#include "node-agent/hooks/stopped_process.h"

namespace weft::attach {
namespace {

std::string Proc(int32_t pid, const std::string& name) {
  return "/proc/" + std::to_string(pid) + "/" + name;
}

std::string ReadSmall(const std::string& path, size_t limit) {
  std::ifstream in(path, std::ios::binary);
  std::string text(limit, '\0');
  in.read(text.data(), static_cast<std::streamsize>(limit));
  text.resize(static_cast<size_t>(in.gcount()));
  return text;
}

std::unexpected<Error> Refuse(const std::string& why) { return Fail(ErrorCode::kUnsupported, why); }

std::unexpected<Error> RefuseStrict() {
  return Refuse("it may only read and write (seccomp's strict mode), so it could not record");
}

Result<ProcessStatus> ReadStatus(const std::string& path) {
  const std::string text = ReadSmall(path, kMaxStatusBytes);
  if (text.empty()) return Fail(ErrorCode::kNotFound, "it is not there");
  if (text.size() == kMaxStatusBytes)
    return Fail(ErrorCode::kLimit, path + " has more than 1 MiB: give it fewer groups");
  return ParseStatus(text);
}

uint64_t AuxiliaryValue(const std::vector<uint8_t>& vector, uint64_t type) {
  for (size_t at = 0; at + 16 <= vector.size(); at += 16) {
    uint64_t entry[2];
    std::memcpy(entry, vector.data() + at, sizeof(entry));
    if (entry[0] == type) return entry[1];
  }
  return 0;
}

// Returns whether it is a program of Go.
Result<bool> CheckProgram(int32_t pid) {
  const UniqueFd file(open(Proc(pid, "exe").c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (!file && errno == ENOENT) return Refuse("it is a thread of the kernel");
  if (!file)
    return Fail(ErrorCode::kPermission,
                FailErrno("weft may not look at its program").error().message +
                    "; run it as root with CAP_SYS_PTRACE");
  const auto image = ElfImage::Read(file.get());
  if (!image || image->header().e_machine != EM_X86_64)
    return Refuse("its program is not of this machine's 64-bit architecture");
  return IsGoProgram(*image);
}

}  // namespace

ProcessStatus ParseStatus(const std::string& text) {
  ProcessStatus status;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) {
    const size_t colon = line.find(":\t");
    if (colon == std::string::npos) continue;
    const std::string name = line.substr(0, colon), value = line.substr(colon + 2);
    if (name == "State" && !value.empty()) status.state = value[0];
    if (name == "TracerPid") status.tracer = std::atoi(value.c_str());
    if (name == "PPid") status.parent = std::atoi(value.c_str());
    if (name == "Seccomp") status.seccomp = std::atoi(value.c_str());
    if (name == "x86_Thread_features")
      status.has_shadow_stack = value.find("shstk") != std::string::npos;
  }
  return status;
}

Result<Target> CheckTarget(int32_t pid) {
  WEFT_ASSIGN(const ProcessStatus status, ReadStatus(Proc(pid, "status")));
  Target target{.pid = pid, .tracer = status.tracer, .auxiliary = {}};
  if (status.state == 'Z' || status.state == 'X')
    return Refuse(IdsIn(Proc(pid, "task")).size() > 1
                      ? "its first thread has ended, and the kernel shows its memory no more"
                      : "it has ended, and its parent has not taken note of it");
  WEFT_ASSIGN(target.is_go, CheckProgram(pid));
  WEFT_ASSIGN(target.has_library, HasLibrary(pid));
  const std::string auxiliary = ReadSmall(Proc(pid, "auxv"), kMaxAuxiliaryBytes);
  target.auxiliary.assign(auxiliary.begin(), auxiliary.end());
  if (target.has_library) return target;
  WEFT_TRY(CheckTracer(target));
  if (status.seccomp == SECCOMP_MODE_STRICT) return RefuseStrict();
  if (status.has_shadow_stack) return Refuse("it has a shadow stack, which weft cannot serve");
  if (hooks::ShareMemory(pid, status.parent))
    return Refuse(
        "it runs on the memory of its parent (vfork) and will execute another program; "
        "try again then");
  if (AuxiliaryValue(target.auxiliary, AT_SECURE) != 0)
    return Refuse("it was started with more rights than its user has (setuid)");
  return target;
}

// A thread of this process, which puts in hooks, traces it for some milliseconds only.
Status CheckTracer(const Target& target) {
  if (target.tracer == 0 ||
      access(("/proc/self/task/" + std::to_string(target.tracer)).c_str(), F_OK) == 0)
    return {};
  return Fail(ErrorCode::kPermission, "process " + std::to_string(target.tracer) +
                                          " traces it (a debugger, strace): end that first");
}

Result<ProcessStatus> CheckThread(const Target& target, int32_t tid) {
  const std::string task = "task/" + std::to_string(tid) + "/";
  const std::string auxiliary = ReadSmall(Proc(target.pid, task + "auxv"), kMaxAuxiliaryBytes);
  // It has a random address of each program that is executed.
  if (!std::ranges::equal(auxiliary, target.auxiliary, {}, [](char c) { return uint8_t(c); }))
    return Fail(ErrorCode::kNotFound,
                "it ended or executed another program meanwhile; try again if it is there");
  if (target.is_meant && !target.is_meant(target.pid))
    return Fail(ErrorCode::kNotFound, "another process has its id by now");
  WEFT_ASSIGN(const ProcessStatus status, ReadStatus(Proc(target.pid, task + "status")));
  if (status.seccomp == SECCOMP_MODE_STRICT) return RefuseStrict();
  return status;
}

// An agent that died may have left a part of one.
Result<bool> HasLibrary(int32_t pid) {
  WEFT_ASSIGN(const std::vector<hooks::MappedRange> ranges, hooks::ReadRanges(pid));
  const auto memory = hooks::ProcessMemory::Open(pid);
  return std::ranges::any_of(hooks::ObjectsOf(ranges), [&](const hooks::LoadedObject& object) {
    return object.path.find("libweft.so") != std::string::npos &&
           !(memory && hooks::HookTable::IsHalfLoaded(*memory, object));
  });
}

Result<bool> HasFilter(int32_t pid) {
  bool has_filter = false;
  for (const int32_t tid : hooks::ThreadsOf(pid)) {
    const auto status = ReadStatus(Proc(pid, "task/" + std::to_string(tid) + "/status"));
    if (status && status->seccomp == SECCOMP_MODE_STRICT) return RefuseStrict();
    has_filter = has_filter || !status || status->seccomp != 0;
  }
  return has_filter;
}

Result<UniqueFd> OpenNewMemfd(int32_t pid, int32_t tid, uint64_t fd) {
  const UniqueFd own(memfd_create("own", MFD_CLOEXEC));
  const std::string path = Proc(pid, "task/" + std::to_string(tid) + "/fd/" + std::to_string(fd));
  const UniqueFd place(open(path.c_str(), O_PATH | O_CLOEXEC));
  struct stat memory{}, found{};
  if (!own || !place || fstat(own.get(), &memory) != 0 || fstat(place.get(), &found) != 0)
    return FailErrno(path);
  // The kernel's memfds are all on one device, on which nothing has a path.
  if (!S_ISREG(found.st_mode) || found.st_dev != memory.st_dev || found.st_nlink != 0 ||
      found.st_size != 0)
    return Fail(ErrorCode::kPermission, "it has put another file where libweft.so was to be");
  const std::string again = "/proc/self/fd/" + std::to_string(place.get());
  UniqueFd file(open(again.c_str(), O_RDWR | O_CLOEXEC));
  if (!file) return FailErrno(path);
  return file;
}

}  // namespace weft::attach
