// SPDX-License-Identifier: Apache-2.0
// Makes events of probes of user-space functions: uprobes, uretprobes and USDT probes.
//
// At a function's start they record the arguments that the Trace describes, or else the registers
// of integer arguments (arg0 to arg5). At its return they record the returned value and the
// duration in ns. At a USDT probe they record the arguments of its note. `ip` is the place in the
// process. Go passes arguments in registers of its own (its internal calling convention, Go 1.17
// and later), and strings in two of them. A Go program does not survive a probe at a return, since
// its stacks move. Such probes are therefore refused. Thread-safety: the functions take immutable
// values.
#ifndef WEFT_NODE_AGENT_KERNEL_USER_PROBES_H_
#define WEFT_NODE_AGENT_KERNEL_USER_PROBES_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "lib/api/trace.h"
#include "node-agent/kernel/resolve.h"
#include "node-agent/kernel/user_program.h"

namespace weft::kernel {

struct UserPlace {
  std::string event;  // its name
  std::string function;
  uint64_t offset = 0;                        // bytes behind its start; of a return: 0
  std::vector<api::FunctionArg> arguments{};  // empty: registers
  std::optional<api::ValueType> returns{};    // none: the register
};

// Errors: those of UserProgram::FindFunction; kUnsupported: the return of a Go function.
Result<Resolved> ResolveUprobe(const UserProgram& program, const UserPlace& place);
Result<Resolved> ResolveUretprobe(const UserProgram& program, const UserPlace& place);

// Returns one event for each place of the probe "provider:name", all with the name `event`. Errors
// and `left_out` are those of UserProgram::FindUsdt.
Result<std::vector<Resolved>> ResolveUsdt(const UserProgram& program, const std::string& event,
                                          const std::string& probe,
                                          std::vector<std::string>* left_out = nullptr);

}  // namespace weft::kernel

#endif  // WEFT_NODE_AGENT_KERNEL_USER_PROBES_H_
