// SPDX-License-Identifier: Apache-2.0
// Builds a Trace from its short form: the flags of a command line. Thread-safety: pure
// functions.
#ifndef WEFT_LIB_API_BUILDER_H_
#define WEFT_LIB_API_BUILDER_H_

#include <expected>
#include <string>
#include <vector>

#include "lib/api/diagnostic.h"
#include "lib/api/parse.h"
#include "lib/api/trace.h"

namespace weft::api {

// The flags as the user gave them, unchecked. "" or empty: the flag was not given; then contexts
// are vpid and vtid if functions are recorded that weft hooks, and none otherwise. Each text of
// `events`, `exclude`, `functions`, `function_sets`, `kernel` and `syscalls` may be a list with
// commas.
struct ShortForm {
  std::string name = "record";
  std::vector<std::string> events;   // --event; each becomes one of spec.user.events
  std::vector<std::string> exclude;  // --exclude; of every event
  std::string log_level;             // --log-level: LEVEL (and more severe), =LEVEL, FROM..TO
  // --function: [OBJECT:]NAME; PATH:SYMBOL, where PATH begins with "/": one of
  // spec.kernel.userProbes, at entry and return
  std::vector<std::string> functions;
  std::vector<std::string> function_sets;  // --function-set
  std::vector<std::string> usdt;           // --usdt: PATH:PROVIDER:NAME, also one of these
  std::vector<std::string> kernel;         // --kernel: tracepoints
  std::vector<std::string> syscalls;       // --syscall
  std::string syscall_buffer;              // --syscall-buffer: bytes
  std::string filter;                      // --filter; of all events, or of the functions alone
  std::vector<std::string> context;        // --context
  std::string buffer_size;                 // --subbuf-size or --buffer-size: a quantity
  std::string buffer_count;                // --subbufs or --buffer-count
  bool overwrite = false;                  // --overwrite, --mode
  bool snapshot = false;                   // --snapshot; implies overwrite
  std::string duration;                    // --duration
};

// Returns the Trace, or the mistakes, with the flag in place of the path: `--event "shop": matches
// no event: ...`.
std::expected<Trace, Diagnostics> BuildTrace(const ShortForm& form,
                                             const ParseOptions& options = {});

}  // namespace weft::api

#endif  // WEFT_LIB_API_BUILDER_H_
