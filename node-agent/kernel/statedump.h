// SPDX-License-Identifier: Apache-2.0
// The events of a state dump: the kinds of objects that weft.ko walks through (enum
// weft_kernel_state of lib/abi/kernel.h), by the catalogue's names, and each event resolved for a
// kernel.
//
// A session records all events of the catalogue's `states`, or none, since they refer to each
// other. Thread-safety: immutable after Load.
#ifndef WEFT_NODE_AGENT_KERNEL_STATEDUMP_H_
#define WEFT_NODE_AGENT_KERNEL_STATEDUMP_H_

#include <cstdint>
#include <map>
#include <string_view>

#include "node-agent/kernel/resolve.h"

namespace weft::kernel {

class Statedump {
 public:
  // `btf`, the kernel's own, outlives this.
  explicit Statedump(const Btf& btf);

  // kPermission: it belongs to no namespace, and the session is not cluster-wide; kInvalid: the
  // catalogue asks for a state that there is not.
  [[nodiscard]] Result<Resolved> Resolve(const Catalogue& catalogue, const StateEntry& entry,
                                         const ResolveOptions& options) const;

 private:
  [[nodiscard]] uint32_t TypeOf(std::string_view declared) const;

  const Btf& btf_;
  std::map<std::string_view, uint32_t> pointers_;  // to structures, by their name
};

}  // namespace weft::kernel

#endif  // WEFT_NODE_AGENT_KERNEL_STATEDUMP_H_
