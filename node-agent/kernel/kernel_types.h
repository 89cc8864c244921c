// SPDX-License-Identifier: Apache-2.0
// All tracepoints that exist now: those of the kernel and those of loaded modules, each resolved
// with the BTF that contains it.
//
// The agent loads them when a session first requests kernel events (one BTF is 5 MB), and again
// when a module may have been loaded. Thread-safety: immutable after Load.
#ifndef WEFT_NODE_AGENT_KERNEL_KERNEL_TYPES_H_
#define WEFT_NODE_AGENT_KERNEL_KERNEL_TYPES_H_

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "node-agent/kernel/resolve.h"

namespace weft::kernel {

class KernelTypes {
 public:
  // `folder` holds vmlinux and a file per module, like /sys/kernel/btf; `loaded` holds a folder per
  // module, like /sys/module. An error: the kernel's own types cannot be read. A module whose types
  // cannot be read, or that has tracepoints and no types, is left out and named in problems().
  static Result<KernelTypes> Load(const std::string& folder = "/sys/kernel/btf",
                                  const std::string& loaded = "/sys/module");

  [[nodiscard]] const Btf& kernel() const { return *kernel_; }
  // Each problem names a module and says why its tracepoints are not found, for people.
  [[nodiscard]] const std::vector<std::string>& problems() const { return problems_; }

  // Like MatchTracepoints and ResolveTracepoint, for the kernel and its modules.
  [[nodiscard]] std::vector<std::string> Match(const Catalogue& catalogue,
                                               const std::string& pattern,
                                               const std::vector<std::string>& exclusions) const;
  [[nodiscard]] Result<Resolved> Resolve(const Catalogue& catalogue, std::string_view tracepoint,
                                         const ResolveOptions& options) const;

 private:
  std::shared_ptr<const Btf> kernel_;
  std::vector<Btf> modules_;  // only those that have tracepoints
  std::vector<std::string> problems_;
};

}  // namespace weft::kernel

#endif  // WEFT_NODE_AGENT_KERNEL_KERNEL_TYPES_H_
