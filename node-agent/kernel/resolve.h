// SPDX-License-Identifier: Apache-2.0
// Turns the name of an event into what a back end needs (backend.h): its description, the steps
// that fetch its fields, and its subjects, by this kernel's types and the catalogue. Every program
// that weft.ko gets (fetch_program.h) passes weft_fetch_validate.
//
// If a kernel lacks something, the event has no field for it, and this is reported; the event
// itself is never refused for this reason. Thread-safety: the functions take immutable values.
#ifndef WEFT_NODE_AGENT_KERNEL_RESOLVE_H_
#define WEFT_NODE_AGENT_KERNEL_RESOLVE_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "lib/abi/kernel.h"
#include "lib/base/result.h"
#include "node-agent/kernel/btf.h"
#include "node-agent/kernel/catalogue.h"
#include "node-agent/kernel/fetch_step.h"

namespace weft::kernel {

struct Resolved {
  std::string name;    // of the event in the trace
  std::string target;  // tracepoint or function; empty: a system call, a place in a file
  uint32_t kind = 0;   // enum weft_kernel_event_kind
  uint64_t offset = 0;
  uint64_t semaphore = 0;  // of a USDT probe, in the file
  uint32_t number = 0;
  uint32_t table = 0;
  std::vector<uint8_t> known;  // of unknown system calls: weft_kernel_event's
  uint32_t subjects = 0;
  std::vector<uint8_t> description;
  std::vector<FetchStep> fetch;
  std::string condition;  // a filter of the event's own, over its fields; empty: none
  std::vector<std::string>
      left_out;  // "FIELD: why": what this kernel does not have, or what has no room
  std::vector<std::string>
      withheld;  // the same of what others than cluster-wide sessions do not get
  std::vector<std::string> remarks;  // what else is not as it could be, behind the event's name
};

struct ResolveOptions {
  // For a cluster-wide session (WEFT_KERNEL_SESSION_ALL), which also gets events that belong to no
  // namespace.
  bool cluster_wide = false;
  bool has_user_addresses = false;  // as FieldMaker's
  // Records addresses of kernel memory, which a namespace of a cluster does not get.
  bool addresses = false;

  [[nodiscard]] bool shows_addresses() const { return cluster_wide || addresses; }
};

// Resolves a tracepoint by its own name. kNotFound: this kernel does not have it; kUnsupported: it
// cannot be recorded, and the message says why; kPermission: it concerns no task, and the session
// is not cluster-wide.
Result<Resolved> ResolveTracepoint(const Btf& btf, const Catalogue& catalogue,
                                   std::string_view tracepoint, const ResolveOptions& options);

// Names of the tracepoints that a rule means, sorted. `pattern` and `exclusions` are star patterns
// over the tracepoint's name or the event's.
std::vector<std::string> MatchTracepoints(const Btf& btf, const Catalogue& catalogue,
                                          const std::string& pattern,
                                          const std::vector<std::string>& exclusions);

}  // namespace weft::kernel

#endif  // WEFT_NODE_AGENT_KERNEL_RESOLVE_H_
