// SPDX-License-Identifier: Apache-2.0
// The functions of a kernel, by its own list (/proc/kallsyms). It is searched before a probe is
// put on a function, so that the error for a wrong name shows the name and not an errno.
// Thread-safety: immutable after Parse.
#ifndef WEFT_NODE_AGENT_KERNEL_SYMBOLS_H_
#define WEFT_NODE_AGENT_KERNEL_SYMBOLS_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "lib/base/result.h"

namespace weft::kernel {

class KernelSymbols {
 public:
  // Parses lines "ADDRESS TYPE NAME[\t[MODULE]]". Errors: kCorrupt, with the line's number; kLimit.
  static Result<KernelSymbols> Parse(std::string_view text);
  static Result<KernelSymbols> Load(const std::string& path = "/proc/kallsyms");

  // Is there one function of that name, and is `offset` inside? kNotFound; kConflict: several
  // functions have that name, and the kernel would choose one; kInvalid: the offset is beyond its
  // end. Without addresses (kptr_restrict), offsets are not checked.
  [[nodiscard]] Status CheckFunction(std::string_view name, uint64_t offset) const;

 private:
  struct Function {
    std::string name;
    uint64_t address = 0;
    uint64_t end = 0;  // where the next one begins; 0: not known
  };

  void FindEnds();

  std::vector<Function> functions_;  // by name
};

}  // namespace weft::kernel

#endif  // WEFT_NODE_AGENT_KERNEL_SYMBOLS_H_
