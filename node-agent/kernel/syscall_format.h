// SPDX-License-Identifier: Apache-2.0
// Reads the running kernel's description of a system call's arguments:
// events/syscalls/sys_enter_NAME/format of tracefs. The text is parsed as foreign bytes are.
// Thread-safety: plain values and functions.
#ifndef WEFT_NODE_AGENT_KERNEL_SYSCALL_FORMAT_H_
#define WEFT_NODE_AGENT_KERNEL_SYSCALL_FORMAT_H_

#include <string>
#include <string_view>
#include <vector>

#include "lib/base/result.h"

namespace weft::kernel {

struct SyscallParameter {
  std::string type;  // as in C: "const char *", "unsigned int"; empty: not known
  std::string name;

  [[nodiscard]] bool is_pointer() const { return type.ends_with('*'); }
  // Is it text that the kernel reads?
  [[nodiscard]] bool is_text() const;

  bool operator==(const SyscallParameter&) const = default;
};

// Returns the parameters in order, at most six. kCorrupt: the text is not in this format.
Result<std::vector<SyscallParameter>> ParseSyscallFormat(std::string_view text);

}  // namespace weft::kernel

#endif  // WEFT_NODE_AGENT_KERNEL_SYSCALL_FORMAT_H_
