// SPDX-License-Identifier: GPL-2.0-only
// Functions of this program for uprobes (a file and a place in it), and cgroups for processes that
// run them. Any thread.
#ifndef WEFT_KMOD_TESTS_USER_CODE_H_
#define WEFT_KMOD_TESTS_USER_CODE_H_

#include <sys/types.h>

#include <cstdint>
#include <string>

#include "lib/base/unique_fd.h"

namespace weft::kmod {

struct PlaceInFile {
  UniqueFd file;  // open for reading
  uint64_t offset = 0;
};
// Finds the file and the offset that are mapped at that address; no file: memory without one.
PlaceInFile Locate(const void* address);

// Is the first byte of the function a breakpoint (0xcc) in this process now?
bool HasBreakpoint(const void* function);

// Functions that nothing else calls. The first two return the sum of their integers. The last one
// calls itself and returns how often.
extern "C" uint64_t WeftTarget(uint64_t value);
extern "C" uint64_t WeftSixArguments(uint64_t a, uint32_t b, int64_t c, const char* d, uint8_t e,
                                     uint64_t f);
extern "C" uint64_t WeftRecursive(uint64_t depth);

// Two overlays above one copy of this program. The destructor unmounts them. Needs root.
class Overlays {
 public:
  explicit Overlays(int file);
  ~Overlays();
  Overlays(const Overlays&) = delete;
  Overlays& operator=(const Overlays&) = delete;

  // Opens the file through one of the overlays for reading; invalid if something failed.
  [[nodiscard]] UniqueFd OpenInFirst() const;
  [[nodiscard]] UniqueFd OpenInSecond() const;

 private:
  std::string folder_;
};

// A cgroup of its own, removed at the end; no process may be in it then.
class Cgroup {
 public:
  explicit Cgroup(const std::string& name);
  ~Cgroup();
  Cgroup(const Cgroup&) = delete;
  Cgroup& operator=(const Cgroup&) = delete;

  [[nodiscard]] uint64_t id() const;  // as WEFT_IOCTL_SCOPE wants it; 0: there is none
  [[nodiscard]] bool Take(pid_t process) const;

 private:
  std::string folder_;
};

}  // namespace weft::kmod

#endif  // WEFT_KMOD_TESTS_USER_CODE_H_
