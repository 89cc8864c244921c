// SPDX-License-Identifier: Apache-2.0
// Compiles a Trace to the rules that are published (lib/control), to the events of weft.ko
// (node-agent/kernel) and to the channels that the consumer is told of (lib/ipc). Pure functions,
// except for the kernel's part, which looks at the running kernel.
#ifndef WEFT_NODE_AGENT_AGENT_SESSION_COMPILE_H_
#define WEFT_NODE_AGENT_AGENT_SESSION_COMPILE_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "lib/api/trace.h"
#include "lib/base/result.h"
#include "lib/control/ruleset.h"
#include "lib/ipc/messages.h"
#include "node-agent/hooks/functions.h"
#include "node-agent/kernel/backend.h"

namespace weft::agent {

// Values that all channels of a session share.
struct CompileContext {
  std::string hostname;
  std::string created;  // "20261121T103330Z"
  std::string programs;
  std::string ctf_version;
  uint32_t uid = 0;
  bool several_traces = false;   // each then has a folder of its own
  bool of_tenant = false;        // what tells of the whole node is left out, with a notice
  std::string why_no_functions;  // spec.user.functions is refused with it; "": it is recorded
  // The folder where paths of spec.kernel.userProbes begin. std::nullopt: they are paths in
  // containers, whose probes CompileUserProbes finds.
  std::optional<std::string> object_root;
};

struct CompiledChannel {
  control::ChannelSpec spec;          // id not set
  ipc::ChannelDefinition definition;  // id and uuid not set
  std::vector<hooks::HookRule> functions;
  std::vector<kernel::Event> kernel_events;
  kernel::Trackers trackers;         // of the kernel's
  std::vector<std::string> notices;  // parts of the Trace that are not recorded here, for people
};

// Compiles the channel `user` of a Trace. kInvalid, kUnsupported: nothing of it can be recorded;
// the message says why.
Result<CompiledChannel> CompileUserChannel(const api::Trace& trace, const CompileContext& context);
// Compiles the channel `kernel`, as far as the running kernel and weft.ko can record it for a set
// of cgroups. `features`: those of kernel::Support.
Result<CompiledChannel> CompileKernelChannel(const api::Trace& trace, const CompileContext& context,
                                             uint32_t features);

// Compiles all of that channel but its events. It reads nothing from the machine.
Result<CompiledChannel> CompileKernelLayout(const api::Trace& trace, const CompileContext& context);

// Why functions cannot be recorded on this machine; "": they can.
std::string WhyNoFunctions();

// Why a namespace's Trace in a cluster does not get this context: it tells of the node; "": it gets
// it.
std::string WhyNotForTenants(const std::string& context);

// Limits of what a kernel channel may record, besides the spec.
struct KernelReach {
  bool cluster_wide = false;       // events that belong to no namespace, too
  bool of_tenant = false;          // as in CompileContext; without addresses of the kernel
  uint32_t features = UINT32_MAX;  // kernel::Support's
  std::optional<std::string> object_root{};  // as in CompileContext
};

// Fills in its events and notices (compile_kernel.cc). kInvalid: a rule does not fit this kernel;
// kUnsupported: no event that the rules match can be recorded.
Status CompileKernelEvents(const api::TraceSpec& from, const KernelReach& reach,
                           CompiledChannel& to);
// The probes of one rule of spec.kernel.userProbes in one container.
struct UserProbes {
  bool has_file = false;
  std::vector<kernel::Event> events;
  std::vector<std::string> notices;  // what of it is not recorded, and why, for people
};
// Returns the probes of each rule, in order. `root`: the container's root. It takes as long as
// reading the container's own files.
std::vector<UserProbes> CompileUserProbes(const api::TraceSpec& from, const std::string& root);

// Returns the program of a filter: an event must pass the Trace's filter and its own. Either may
// end in a comment: hence the line ends. Empty: there is none.
Result<std::vector<uint8_t>> CompileFilters(const std::string& all, const std::string& own);

}  // namespace weft::agent

#endif  // WEFT_NODE_AGENT_AGENT_SESSION_COMPILE_H_
