// SPDX-License-Identifier: GPL-2.0-only
// See user_code.h.
#include "kmod/tests/user_code.h"

#include <fcntl.h>
#include <sys/mount.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cinttypes>
#include <cstdio>
#include <cstdlib>
#include <fstream>

namespace weft::kmod {

PlaceInFile Locate(const void* address) {
  const auto wanted = reinterpret_cast<uintptr_t>(address);
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);) {
    uint64_t begin = 0;
    uint64_t end = 0;
    uint64_t offset = 0;
    if (std::sscanf(line.c_str(), "%" SCNx64 "-%" SCNx64 " %*s %" SCNx64, &begin, &end, &offset) !=
        3)
      continue;
    if (wanted < begin || wanted >= end) continue;
    const size_t path = line.find('/');
    if (path == std::string::npos) return {};
    return {UniqueFd(::open(line.c_str() + path, O_RDONLY | O_CLOEXEC)), wanted - begin + offset};
  }
  return {};
}

bool HasBreakpoint(const void* function) {
  return *static_cast<const volatile uint8_t*>(function) == 0xcc;
}

extern "C" {
[[gnu::noinline, gnu::noclone]] uint64_t WeftTarget(uint64_t value) {
  asm volatile("" : "+r"(value));
  return value;
}

[[gnu::noinline, gnu::noclone]] uint64_t WeftSixArguments(uint64_t a, uint32_t b, int64_t c,
                                                          const char* d, uint8_t e, uint64_t f) {
  asm volatile("" : "+r"(a) : "r"(d));
  return a + b + static_cast<uint64_t>(c) + e + f;
}

[[gnu::noinline, gnu::noclone]] uint64_t WeftRecursive(uint64_t depth) {
  const uint64_t below = depth == 0 ? 0 : WeftRecursive(depth - 1) + 1;
  asm volatile("" ::: "memory");  // no tail call
  return below;
}
}

Overlays::Overlays(int file) {
  char name[] = "/tmp/weft-overlays-XXXXXX";
  if (::mkdtemp(name) == nullptr) return;
  folder_ = name;
  // An overlay does not stand upon another, which /tmp may be on.
  ::mount("weft", name, "tmpfs", 0, nullptr);
  for (const char* folder : {"/below", "/empty", "/first", "/second"})
    ::mkdir((folder_ + folder).c_str(), 0755);
  const UniqueFd copy(
      ::open((folder_ + "/below/file").c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0644));
  struct stat status{};
  if (::fstat(file, &status) != 0) return;
  for (off_t done = 0; done < status.st_size;)
    if (::sendfile(copy.get(), file, &done, static_cast<size_t>(status.st_size - done)) <= 0)
      return;
  // An overlay without an upper folder needs at least two lower ones.
  const std::string options = "lowerdir=" + folder_ + "/below:" + folder_ + "/empty";
  for (const char* folder : {"/first", "/second"})
    ::mount("weft", (folder_ + folder).c_str(), "overlay", 0, options.c_str());
}

Overlays::~Overlays() {
  for (const char* folder : {"/first", "/second", ""})
    ::umount2((folder_ + folder).c_str(), MNT_DETACH);
  ::rmdir(folder_.c_str());
}

UniqueFd Overlays::OpenInFirst() const {
  return UniqueFd(::open((folder_ + "/first/file").c_str(), O_RDONLY | O_CLOEXEC));
}

UniqueFd Overlays::OpenInSecond() const {
  return UniqueFd(::open((folder_ + "/second/file").c_str(), O_RDONLY | O_CLOEXEC));
}

Cgroup::Cgroup(const std::string& name) : folder_("/sys/fs/cgroup/" + name) {
  ::mkdir(folder_.c_str(), 0755);
}

Cgroup::~Cgroup() { ::rmdir(folder_.c_str()); }

uint64_t Cgroup::id() const {
  struct stat status{};
  return ::stat(folder_.c_str(), &status) == 0 ? status.st_ino : 0;
}

bool Cgroup::Take(pid_t process) const {
  std::ofstream members(folder_ + "/cgroup.procs");
  members << process << std::flush;
  return members.good();
}

}  // namespace weft::kmod
