// SPDX-License-Identifier: Apache-2.0
// Can libweft.so be loaded into a running process? Looks at it from outside and changes nothing.
#ifndef WEFT_NODE_AGENT_ATTACH_TARGET_CHECK_H_
#define WEFT_NODE_AGENT_ATTACH_TARGET_CHECK_H_

#include <cstdint>
#include <string>
#include <vector>

#include "lib/base/result.h"

namespace weft::attach {

struct Target {
  int32_t pid = 0;
  bool has_library = false;        // it is there already
  bool is_filtered = false;        // by seccomp
  std::vector<uint8_t> auxiliary;  // /proc/PID/auxv
};

// What /proc/PID/status says.
struct ProcessStatus {
  char state = '?';
  int32_t tracer = 0;
  int32_t parent = 0;
  int seccomp = 0;
  bool has_shadow_stack = false;
};
ProcessStatus ParseStatus(const std::string& text);

// kNotFound: there is no such process any more. kPermission: it may not be looked into.
// kUnsupported: it is one into which nothing can be loaded; the message has the reason.
Result<Target> CheckTarget(int32_t pid);

}  // namespace weft::attach

#endif  // WEFT_NODE_AGENT_ATTACH_TARGET_CHECK_H_
