// SPDX-License-Identifier: Apache-2.0
// Can libweft.so be loaded into a running process? Looks at it from outside and changes nothing.
#ifndef WEFT_NODE_AGENT_ATTACH_TARGET_CHECK_H_
#define WEFT_NODE_AGENT_ATTACH_TARGET_CHECK_H_

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "lib/base/result.h"
#include "lib/base/unique_fd.h"

namespace weft::attach {

struct Target {
  int32_t pid = 0;
  bool has_library = false;                   // it is there already, and not loaded by half
  bool is_go = false;                         // goroutines have stacks of some KiB
  int32_t tracer = 0;                         // a process or thread that traces it; 0: none does
  std::vector<uint8_t> auxiliary;             // /proc/PID/auxv
  std::function<bool(int32_t pid)> is_meant;  // LoadOptions
};

// What /proc/PID/status says.
struct ProcessStatus {
  char state = '?';
  int32_t tracer = 0;
  int32_t parent = 0;
  int seccomp = 0;
  bool has_shadow_stack = false;
  bool operator==(const ProcessStatus&) const = default;
};
ProcessStatus ParseStatus(const std::string& text);

// kNotFound: there is no such process any more. kPermission: it may not be looked into.
// kUnsupported: it is one into which nothing can be loaded; the message has the reason.
Result<Target> CheckTarget(int32_t pid);

// kPermission: another program traces it. Call it if it has to be stopped.
Status CheckTracer(const Target& target);

// Call it when the thread is stopped, which cannot become another one or execute a program then.
// kNotFound: it is no thread of the process as CheckTarget saw it: that has ended, or has executed
// another program, with more rights maybe, or is not meant. kUnsupported: nothing can be loaded by
// this thread.
Result<ProcessStatus> CheckThread(const Target& target, int32_t tid);

// Is the library in the process, and not by half?
Result<bool> HasLibrary(int32_t pid);

// Does a thread of the process have a seccomp filter? True also if that cannot be seen.
// kUnsupported: one is in seccomp's strict mode.
Result<bool> HasFilter(int32_t pid);

// Opens the memfd that a thread of a process has just made, to give it a size. Another thread may
// have put any file there meanwhile, which this process could change and the other one could not.
// kPermission: it is no memfd, or is not empty.
Result<UniqueFd> OpenNewMemfd(int32_t pid, int32_t tid, uint64_t fd);

}  // namespace weft::attach

#endif  // WEFT_NODE_AGENT_ATTACH_TARGET_CHECK_H_
