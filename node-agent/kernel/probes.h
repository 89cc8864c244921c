// SPDX-License-Identifier: Apache-2.0
// Makes events of probes of kernel functions: kprobes and kretprobes.
//
// At a function's start they record its parameters if BTF has its prototype; otherwise they record
// the registers of integer arguments (arg0 to arg5). Behind the start they record these registers.
// At its return they record the returned value and the duration in ns. Registers and addresses tell
// where the kernel lies in memory, so only cluster-wide sessions record them. Thread-safety: the
// functions take immutable values.
#ifndef WEFT_NODE_AGENT_KERNEL_PROBES_H_
#define WEFT_NODE_AGENT_KERNEL_PROBES_H_

#include <cstdint>
#include <string>

#include "node-agent/kernel/resolve.h"
#include "node-agent/kernel/symbols.h"

namespace weft::kernel {

struct ProbePlace {
  std::string event;  // its name
  std::string function;
  uint64_t offset = 0;  // bytes behind its start
};

// Its errors are those of KernelSymbols::CheckFunction.
Result<Resolved> ResolveKprobe(const Btf& btf, const Catalogue& catalogue,
                               const KernelSymbols& symbols, const ProbePlace& place,
                               const ResolveOptions& options);

// `place.offset` must be 0.
Result<Resolved> ResolveKretprobe(const Btf& btf, const Catalogue& catalogue,
                                  const KernelSymbols& symbols, const ProbePlace& place,
                                  const ResolveOptions& options);

}  // namespace weft::kernel

#endif  // WEFT_NODE_AGENT_KERNEL_PROBES_H_
