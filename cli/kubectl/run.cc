// SPDX-License-Identifier: Apache-2.0
// `kubectl weft run`: makes a Trace, shows its events, and ends and deletes it.
#include <cinttypes>
#include <cstdio>

#include "cli/exit_status.h"
#include "cli/kubectl/commands.h"
#include "cli/kubectl/explain.h"
#include "cli/kubectl/follow.h"
#include "cli/kubectl/label_selector.h"
#include "cli/kubectl/live_view.h"
#include "cli/kubectl/trace_objects.h"
#include "lib/api/filters.h"
#include "lib/api/selector.h"
#include "lib/api/session.h"
#include "lib/api/write.h"

namespace weft::kubectl {
namespace {

constexpr std::chrono::milliseconds kLookEvery{500};
// How much longer than its duration a Trace may take to begin where there are pods.
constexpr std::chrono::seconds kToBegin{60};
// How long agents and controller may take until they report that programs have no such event or
// field.
constexpr std::chrono::seconds kToCheckNames{15};

kube::Address AddressOf(const Connection& connection, const std::string& name) {
  return {.resource = kube::kTraces, .name_space = connection.name_space, .name = name};
}

// The Trace as the API server takes it, or what is wrong with the flags.
Result<kube::Json> MakeObject(const RunCommand& command) {
  api::ShortForm form = command.form;
  if (form.name.empty()) form.name = "run";
  auto trace = api::BuildTrace(form, {.check_filter = api::CheckFilter});
  if (!trace) {
    std::string all = api::ToString(trace.error());
    while (all.ends_with('\n')) all.pop_back();
    return Fail(ErrorCode::kInvalid, all);
  }
  WEFT_ASSIGN(trace->spec.pods.selector, ParseLabelSelector(command.labels));
  trace->spec.user.attach = command.attach;
  kube::Json object = kube::Json::parse(api::ToJson(*trace));
  if (command.form.name.empty()) object["metadata"] = {{"generateName", "run-"}};
  return object;
}

bool HasNoPods(const api::Trace& trace) {
  return trace.status.observed_generation != 0 && trace.status.pods.matched == 0;
}

// Why it is not recording yet, for people.
std::string WhyWaiting(const api::Trace& trace) {
  const api::TraceStatus& status = trace.status;
  if (const auto* refusal = FindRefusal(status)) return refusal->reason + ": " + refusal->message;
  if (HasNoPods(trace))
    return "no pod of the namespace " + trace.metadata.name_space + " has the labels " +
           api::ToQuery(trace.spec.pods.selector) + "; kubectl get pods -n " +
           trace.metadata.name_space + " --show-labels shows those that there are";
  std::string why;
  for (const api::SkippedPods& skipped : status.pods.skipped)
    why += (why.empty() ? "" : "; ") + NotTraced(skipped);
  const auto* ready = api::FindCondition(status.conditions, api::kConditionReady);
  // NothingTraced and the end say no more than that.
  if (ready != nullptr &&
      (why.empty() || (ready->reason != "NothingTraced" && !IsOver(status.phase))))
    why += (why.empty() ? "" : "; ") + ready->reason + ": " + ready->message;
  return why.empty() ? "weft's controller has not seen the Trace yet" : why;
}

// Why a Trace that records brings no events, as far as the controller knows; "": not known.
std::string WhyNothing(const api::Trace& trace) {
  std::string why;
  for (const std::string_view type :
       {api::kConditionReceiving, api::kConditionFunctionsHooked, api::kConditionKernelTracing}) {
    const auto* found = api::FindCondition(trace.status.conditions, type);
    // NoEvents says no more than that there are none.
    if (found == nullptr || found->status != api::ConditionStatus::kFalse ||
        found->reason == "NoEvents" || found->message.empty())
      continue;
    why += (why.empty() ? "" : "; ") + found->reason + ": " + found->message;
  }
  return Printable(why);
}

// Returns why no event may have come, where no condition of the Trace gives a reason.
std::string MayBeWhyNothing(const api::Trace& trace) {
  std::string why = "no program emitted a matching one";
  if (trace.spec.duration.value_or(kToCheckNames) < kToCheckNames)
    why += ", or programs have no such event or field, which takes up to " +
           std::to_string(kToCheckNames.count()) +
           " s to find: check names and filter, or set "
           "--duration longer";
  return why;
}

// Waits until the Trace records, and says meanwhile why it does not. Its state then; nothing: ^C.
// The duration of a Trace begins when it records. This waits as long for a pod, and kToBegin longer
// for agents.
Result<std::optional<api::Trace>> WaitUntilReady(const Connection& connection,
                                                 const std::string& name, Interrupts& interrupts) {
  std::string said;
  const auto began = std::chrono::steady_clock::now();
  for (;;) {
    WEFT_ASSIGN(api::Trace trace, GetTrace(connection, name));
    const auto* ready = api::FindCondition(trace.status.conditions, api::kConditionReady);
    const bool is_ready = ready != nullptr && ready->status == api::ConditionStatus::kTrue;
    if (IsOver(trace.status.phase) ||
        (is_ready && !FolderAtRelay(trace).empty() && trace.status.pods.traced > 0))
      return trace;
    std::string why = Printable(WhyWaiting(trace));
    if (why != said) std::fprintf(stderr, "waiting: %s\n", why.c_str());
    said = std::move(why);
    if (const auto most = trace.spec.duration;
        most && std::chrono::steady_clock::now() - began >=
                    *most + (HasNoPods(trace) ? std::chrono::seconds(0) : kToBegin))
      return Fail(ErrorCode::kNotFound,
                  "nothing was recorded within --duration: " + WhyWaiting(trace));
    if (interrupts.Sleep(kLookEvery)) return std::nullopt;
  }
}

// Ends a Trace and leaves it there: its deadline is over. One that was deleted has ended.
Status EndTrace(const Connection& connection, const std::string& name) {
  const auto done =
      connection.client->MergePatch(AddressOf(connection, name), {{"spec", {{"duration", "1s"}}}});
  if (!done && done.error().code != ErrorCode::kNotFound) return std::unexpected(done.error());
  return {};
}

// Shows events until the Trace is over; ends it at ^C, and shows the rest.
Status Show(const Connection& connection, const api::Trace& made, LiveFormat format,
            Interrupts& interrupts) {
  const std::string& name = made.metadata.name;
  TraceView view(connection, name);
  LiveView live(connection, view, FolderAtRelay(made), format);
  live.StopWhen([&interrupts] { return interrupts.came(); });
  std::string why;
  bool is_over = false;
  live.OnLook([&](const api::Trace& trace) {
    is_over = IsOver(trace.status.phase);
    std::string now = live.events() == 0 ? WhyNothing(trace) : "";
    if (now.empty() || now == why) return;
    std::fprintf(stderr, "no events yet: %s\n", now.c_str());
    why = std::move(now);
  });
  auto end = Follow(connection, name, live, interrupts, true);
  // A pipe's reader that left ends it, too.
  const bool unread = !end && end.error().code == ErrorCode::kClosed;
  if (!end && !unread) return std::unexpected(end.error());
  if (unread) return {};
  if (*end == FollowEnd::kInterrupted) {
    std::fprintf(stderr, "%s; a second ^C ends kubectl weft at once and keeps the Trace\n",
                 is_over ? "showing the rest of the Trace" : "ending the Trace");
    if (!is_over) WEFT_TRY(EndTrace(connection, name));
    live.StopWhen({});
    end = Follow(connection, name, live, interrupts, false);
    if (!end) return std::unexpected(end.error());
  }
  if (live.events() == 0 && why.empty()) why = MayBeWhyNothing(made);
  if (live.events() == 0) {
    std::fprintf(stderr, "0 events shown: %s\n", why.c_str());
    return {};
  }
  std::fprintf(stderr, "%" PRIu64 " events shown%s\n", live.events(),
               live.late() == 0 ? ""
                                : (", " + std::to_string(live.late()) +
                                   " of them late, not in the order of their time")
                                      .c_str());
  return {};
}

Status RunTrace(const Connection& connection, const std::string& name, LiveFormat format,
                Interrupts& interrupts) {
  WEFT_ASSIGN(const std::optional<api::Trace> trace, WaitUntilReady(connection, name, interrupts));
  if (!trace) return {};
  const api::TraceStatus& status = trace->status;
  const bool had_no_pod =
      status.events.recorded == 0 && (HasNoPods(*trace) || !status.pods.skipped.empty());
  if (IsOver(status.phase) && (FolderAtRelay(*trace).empty() || had_no_pod))
    return Fail(ErrorCode::kInvalid,
                "the Trace ended, and nothing was recorded: " + WhyWaiting(*trace));
  std::fprintf(stderr, "%s records %" PRId64 " of %" PRId64 " pods; ^C ends it\n", name.c_str(),
               status.pods.traced, status.pods.matched);
  WEFT_TRY(Show(connection, *trace, format, interrupts));
  if (const auto last = GetTrace(connection, name); last && last->status.events.missing > 0)
    std::fprintf(stderr, "%" PRId64 " events were lost; kubectl weft status explains the reasons\n",
                 last->status.events.missing);
  return {};
}

}  // namespace

int Run(const Connection& connection, const RunCommand& command, Interrupts& interrupts) {
  auto object = MakeObject(command);
  if (!object) return Complain(object.error());
  const auto made = connection.client->Create(
      {.resource = kube::kTraces, .name_space = connection.name_space}, *object);
  if (!made) return Complain(made.error());
  const std::string name = kube::TextAt(*made, {"metadata", "name"});
  const std::string uid = kube::TextAt(*made, {"metadata", "uid"});
  std::fprintf(stderr, "made the Trace %s in the namespace %s\n", Printable(name).c_str(),
               connection.name_space.c_str());
  const Status done = RunTrace(connection, name, command.format, interrupts);
  const int status = done ? cli::kExitOk : Complain(done.error());
  if (command.keep) {
    std::fprintf(stderr, "next: kubectl weft status %s -n %s\n", Printable(name).c_str(),
                 connection.name_space.c_str());
    return status;
  }
  const Status deleted = connection.client->Delete(AddressOf(connection, name), uid);
  if (!deleted && deleted.error().code != ErrorCode::kNotFound) return Complain(deleted.error());
  return status;
}

}  // namespace weft::kubectl
