// SPDX-License-Identifier: Apache-2.0
// `kubectl weft status`: what the controller says of one Trace, for people.
#include <cinttypes>
#include <cstdio>

#include "cli/exit_status.h"
#include "cli/kubectl/commands.h"
#include "cli/kubectl/explain.h"
#include "cli/kubectl/trace_objects.h"
#include "lib/api/selector.h"

namespace weft::kubectl {
namespace {

void PrintPods(const api::PodCounts& pods) {
  std::printf("Pods:    %" PRId64 " selected, %" PRId64 " traced\n", pods.matched, pods.traced);
  for (const api::SkippedPods& skipped : pods.skipped) {
    std::string names;
    for (const std::string& name : skipped.names) names += (names.empty() ? "" : ", ") + name;
    if (skipped.count > static_cast<std::int64_t>(skipped.names.size())) names += ", ...";
    std::printf("  %" PRId64 " not traced, %s: %s\n", skipped.count,
                Printable(skipped.reason).c_str(), Printable(skipped.message).c_str());
    if (!names.empty()) std::printf("    %s\n", Printable(names).c_str());
  }
}

void PrintEvents(const api::EventCounts& events) {
  std::printf("Events:  %" PRId64 " recorded, %" PRId64 " delivered, %" PRId64 " lost\n",
              events.recorded, events.delivered, events.missing);
  for (const api::EventLoss& loss : events.reasons)
    std::printf("  %" PRId64 " %s/%s\n", loss.count, Printable(loss.stage).c_str(),
                Printable(loss.reason).c_str());
}

const char* StatusName(api::ConditionStatus status) {
  switch (status) {
    case api::ConditionStatus::kTrue:
      return "True";
    case api::ConditionStatus::kFalse:
      return "False";
    case api::ConditionStatus::kUnknown:
      return "Unknown";
  }
  return "?";
}

void PrintConditions(const std::vector<api::Condition>& conditions) {
  if (!conditions.empty()) std::printf("Conditions:\n");
  for (const api::Condition& condition : conditions)
    std::printf("  %-15s %-8s %s%s%s\n", Printable(condition.type).c_str(),
                StatusName(condition.status), Printable(condition.reason).c_str(),
                condition.message.empty() ? "" : ": ", Printable(condition.message).c_str());
}

// The command that helps most in this state.
std::string NextCommand(const api::Trace& trace) {
  const std::string space = " -n " + trace.metadata.name_space;
  const api::TraceStatus& status = trace.status;
  if (status.phase == api::Phase::kFailed || FindRefusal(status) != nullptr)
    return "kubectl describe trace " + trace.metadata.name + space;
  if (trace.spec.RecordsUser() && status.pods.matched == 0 && !IsOver(status.phase))
    return "kubectl get pods" + space + " -l '" + api::ToQuery(trace.spec.pods.selector) + "'";
  if (status.phase == api::Phase::kCompleted)
    return "kubectl weft download " + trace.metadata.name + space;
  return "kubectl weft live " + trace.metadata.name + space;
}

void Print(const api::Trace& trace) {
  const api::TraceStatus& status = trace.status;
  std::printf("Trace:   %s in the namespace %s\n", Printable(trace.metadata.name).c_str(),
              Printable(trace.metadata.name_space).c_str());
  std::printf("Phase:   %s%s\n", std::string(PhaseName(status.phase)).c_str(),
              trace.metadata.deletion_timestamp.empty() ? "" : ", being deleted");
  if (!status.start_time.empty())
    std::printf("Started: %s, %s ago\n", Printable(status.start_time).c_str(),
                Age(status.start_time).c_str());
  if (!status.completion_time.empty()) {
    std::printf("Ended:   %s\n", Printable(status.completion_time).c_str());
  } else if (!status.deadline.empty()) {
    std::printf("Ends:    %s\n", Printable(status.deadline).c_str());
  }
  if (!status.relay.empty()) std::printf("Relay:   %s\n", Printable(status.relay).c_str());
  if (!status.folder.empty()) std::printf("Folder:  %s\n", Printable(status.folder).c_str());
  PrintPods(status.pods);
  PrintEvents(status.events);
  if (status.storage.removed_events > 0) {
    std::printf("Removed: %" PRId64 " events by the relay, for their age or for its limits\n",
                status.storage.removed_events);
  }
  PrintConditions(status.conditions);
  std::printf("Next:    %s\n", Printable(NextCommand(trace)).c_str());
}

}  // namespace

int ShowStatus(const Connection& connection, const std::string& name, bool json) {
  const auto object = connection.client->Get(
      {.resource = kube::kTraces, .name_space = connection.name_space, .name = name});
  if (!object) {
    if (object.error().code == ErrorCode::kNotFound) return Complain(NoSuchTrace(connection, name));
    return Complain(object.error());
  }
  if (json) {
    std::printf("%s\n", object->dump(2, ' ', true, kube::Json::error_handler_t::replace).c_str());
    return cli::kExitOk;
  }
  const auto trace = ToTrace(*object);
  if (!trace) return Complain(trace.error());
  Print(*trace);
  return cli::kExitOk;
}

}  // namespace weft::kubectl
