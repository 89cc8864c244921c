// SPDX-License-Identifier: Apache-2.0
// See trace_objects.h.
#include "cli/kubectl/trace_objects.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>

#include "lib/api/parse.h"
#include "lib/api/session.h"
#include "lib/kube/time.h"

namespace weft::kubectl {

Result<api::Trace> ToTrace(const kube::Json& object) {
  const std::string text = object.dump(-1, ' ', false, kube::Json::error_handler_t::replace);
  auto traces = api::ParseTraces("", text, {.refuse_unknown_fields = false});
  if (!traces)
    return Fail(ErrorCode::kCorrupt,
                "this Trace is not understood; is kubectl-weft as new as weft in the cluster? " +
                    traces.error().front().ToString());
  return std::move(traces->front());
}

Result<api::Trace> GetTrace(const Connection& connection, const std::string& name) {
  const auto object = connection.client->Get(
      {.resource = kube::kTraces, .name_space = connection.name_space, .name = name});
  if (object) return ToTrace(*object);
  if (object.error().code != ErrorCode::kNotFound) return std::unexpected(object.error());
  return std::unexpected(NoSuchTrace(connection, name));
}

Error NoSuchTrace(const Connection& connection, const std::string& name) {
  return {ErrorCode::kNotFound, 0,
          "there is no Trace " + name + " in the namespace " + connection.name_space +
              "; kubectl weft list shows those that there are"};
}

std::string_view PhaseName(api::Phase phase) {
  switch (phase) {
    case api::Phase::kPending:
      return "Pending";
    case api::Phase::kRecording:
      return "Recording";
    case api::Phase::kPaused:
      return "Paused";
    case api::Phase::kDraining:
      return "Draining";
    case api::Phase::kCompleted:
      return "Completed";
    case api::Phase::kFailed:
      return "Failed";
  }
  return "?";
}

const api::Condition* FindRefusal(const api::TraceStatus& status) {
  const auto* accepted = api::FindCondition(status.conditions, api::kConditionAccepted);
  return accepted != nullptr && accepted->status == api::ConditionStatus::kFalse ? accepted
                                                                                 : nullptr;
}

std::string FolderAtRelay(const api::Trace& trace) {
  const std::size_t slash = trace.status.folder.find('/');
  return slash == std::string::npos ? "" : trace.status.folder.substr(slash + 1);
}

std::string Printable(std::string_view text) {
  std::string out(text);
  std::ranges::replace_if(out, [](char c) { return c < ' ' || c > '~'; }, '?');
  return out;
}

std::string NotTraced(const api::SkippedPods& pods) {
  return std::to_string(pods.count) + (pods.count == 1 ? " pod is" : " pods are") +
         " not traced, " + pods.reason + ": " + pods.message;
}

std::string Age(const std::string& since) {
  const auto time = kube::ParseTime(since);
  if (!time) return "-";
  const auto seconds = std::max<std::int64_t>(
      0, std::chrono::duration_cast<std::chrono::seconds>(std::chrono::system_clock::now() - *time)
             .count());
  if (seconds < 120) return std::to_string(seconds) + "s";
  if (seconds < 2 * 3600) return std::to_string(seconds / 60) + "m";
  if (seconds < 48 * 3600) return std::to_string(seconds / 3600) + "h";
  return std::to_string(seconds / 86400) + "d";
}

std::string Bytes(std::uint64_t bytes) {
  if (bytes < 1024) return std::to_string(bytes) + " bytes";
  constexpr std::array kUnits = {"KiB", "MiB", "GiB", "TiB", "PiB"};
  auto value = static_cast<double>(bytes) / 1024;
  std::size_t unit = 0;
  for (; value >= 1024 && unit + 1 < kUnits.size(); ++unit) value /= 1024;
  std::array<char, 32> text;
  std::snprintf(text.data(), text.size(), "%.1f %s", value, kUnits[unit]);
  return text.data();
}

}  // namespace weft::kubectl
