// SPDX-License-Identifier: Apache-2.0
// `kubectl weft live`: shows the events of a Trace, from its first one on, until it ends.
#include <cinttypes>
#include <cstdio>

#include "cli/exit_status.h"
#include "cli/kubectl/commands.h"
#include "cli/kubectl/explain.h"
#include "cli/kubectl/follow.h"
#include "cli/kubectl/trace_objects.h"

namespace weft::kubectl {
namespace {

// Waits until the Trace's status names its folder at the relay. "": ^C, or it will not have any.
Result<std::string> WaitForFolder(const Connection& connection, const std::string& name,
                                  Interrupts& interrupts) {
  for (bool is_first = true;; is_first = false) {
    WEFT_ASSIGN(const api::Trace trace, GetTrace(connection, name));
    std::string folder = FolderAtRelay(trace);
    if (!folder.empty()) return folder;
    if (IsOver(trace.status.phase)) {
      std::string problem =
          "the Trace " + name + " ended and recorded nothing; kubectl weft status ";
      problem.append(name).append(" shows why");
      return Fail(ErrorCode::kNotFound, problem);
    }
    if (is_first) std::fprintf(stderr, "waiting until a relay has the Trace\n");
    if (interrupts.Sleep(std::chrono::milliseconds(500))) return "";
  }
}

}  // namespace

int Live(const Connection& connection, const LiveCommand& command, Interrupts& interrupts) {
  const auto folder = WaitForFolder(connection, command.trace, interrupts);
  if (!folder) return Complain(folder.error());
  if (folder->empty()) return cli::kExitOk;
  TraceView view(connection, command.trace);
  LiveView live(connection, view, *folder, command.json);
  const auto end = Follow(connection, command.trace, live, interrupts, true);
  if (!end && end.error().code == ErrorCode::kClosed) return cli::kExitOk;  // a pipe's reader left
  if (!end) return Complain(end.error());
  if (live.late() > 0)
    std::fprintf(stderr, "%" PRIu64 " events came late and are not in the order of their time\n",
                 live.late());
  return cli::kExitOk;
}

}  // namespace weft::kubectl
