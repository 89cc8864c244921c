// SPDX-License-Identifier: Apache-2.0
// Traces as the API server has them, and what commands say about them. Thread-safety: as
// kube::Client; the others are pure functions.
#ifndef WEFT_CLI_KUBECTL_TRACE_OBJECTS_H_
#define WEFT_CLI_KUBECTL_TRACE_OBJECTS_H_

#include <string>
#include <vector>

#include "cli/kubectl/connection.h"
#include "lib/api/trace.h"
#include "lib/base/result.h"

namespace weft::kubectl {

// kCorrupt: no Trace that this version understands.
Result<api::Trace> ToTrace(const kube::Json& object);

Result<api::Trace> GetTrace(const Connection& connection, const std::string& name);

// Says that there is no such Trace, and what to do.
Error NoSuchTrace(const Connection& connection, const std::string& name);

// "Recording"
std::string_view PhaseName(api::Phase phase);

// Nothing more will be recorded or delivered.
inline bool IsOver(api::Phase phase) {
  return phase == api::Phase::kCompleted || phase == api::Phase::kFailed;
}

// The condition Accepted if it is False: it says why the Trace is not recorded. nullptr: it is not
// False.
const api::Condition* FindRefusal(const api::TraceStatus& status);

// NAME/UID of the Trace's events at the relay. "": status.folder is not set yet.
std::string FolderAtRelay(const api::Trace& trace);

// Text of the cluster for a terminal: control characters and what is no ASCII become "?".
std::string Printable(std::string_view text);

// "2 pods are not traced, REASON: MESSAGE"
std::string NotTraced(const api::SkippedPods& pods);

// "3m", "2h", "5d": as kubectl shows ages. `since`: RFC 3339; "": unknown.
std::string Age(const std::string& since);

// "12.3 MiB"
std::string Bytes(std::uint64_t bytes);

}  // namespace weft::kubectl

#endif  // WEFT_CLI_KUBECTL_TRACE_OBJECTS_H_
