// SPDX-License-Identifier: Apache-2.0
// Lists the tracepoints of a kernel or a module, and what each passes to its probes.
//
// A tracepoint NAME leaves two traces in BTF: the type btf_trace_NAME of its probes, whose
// parameters have no names, and the function __traceiter_NAME, whose parameters have names. A
// tracepoint that was declared without a trace event has at least the function.
#ifndef WEFT_NODE_AGENT_KERNEL_TRACEPOINT_H_
#define WEFT_NODE_AGENT_KERNEL_TRACEPOINT_H_

#include <string>
#include <string_view>
#include <vector>

#include "lib/base/result.h"
#include "node-agent/kernel/btf.h"

namespace weft::kernel {

// A value that an operation ARG can give (lib/abi/fetch.h).
struct Argument {
  std::string name;   // "arg0", ... where the kernel does not tell
  uint32_t type = 0;  // of the BTF; 0: 64 bits of which nothing is known
};

struct Tracepoint {
  std::string name;
  std::vector<Argument> arguments;  // without the probe's data pointer
};

// Names of this BTF's own tracepoints, sorted; of a module's BTF those of the module.
std::vector<std::string> TracepointNames(const Btf& btf);

// kNotFound: there is none in this BTF or its base. kUnsupported: it passes a structure by value,
// or more than WEFT_FETCH_MAX_ARGS arguments: what a probe is given would not be where a fetch
// program looks.
Result<Tracepoint> FindTracepoint(const Btf& btf, std::string_view name);

}  // namespace weft::kernel

#endif  // WEFT_NODE_AGENT_KERNEL_TRACEPOINT_H_
