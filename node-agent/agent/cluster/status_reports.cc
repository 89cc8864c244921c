// SPDX-License-Identifier: Apache-2.0
// See status_reports.h.
#include "node-agent/agent/cluster/status_reports.h"

#include <chrono>
#include <utility>

#include "lib/api/event_counts.h"
#include "node-agent/agent/base/limits.h"
#include "node-agent/agent/cluster/report.h"

namespace weft::agent {
namespace {

Metrics::TraceKey KeyOf(const Session& session) {
  return {session.order->metadata.name_space, session.order->spec.trace_name};
}

}  // namespace

void StatusReports::Report(const api::TraceSession& order, api::SessionStatus status,
                           int64_t now_ns, const std::function<void()>& save) {
  WrittenStatus& written = written_[order.metadata.uid];
  api::RaiseTo(status.events, order.status.events);
  api::RaiseTo(status.events, written.status.events);
  // The last report: what an agent or a keeper before knew to be in flight did not come back.
  if (status.phase == api::Phase::kCompleted) api::LoseInFlight(status.events, "node", "restarted");
  const api::EventCounts& told = written.status.events;
  const bool is_first = (told.recorded == 0 && status.events.recorded != 0) ||
                        (told.delivered == 0 && status.events.delivered != 0) ||
                        (told.missing == 0 && status.events.missing != 0);
  const bool counts_due =
      written.at_ns == 0 || is_first ||
      (now_ns - written.at_ns >= std::chrono::nanoseconds(kCountsSaid).count() &&
       !(written.status.events == status.events));
  if (!counts_due && !DiffersBeyondCounts(written.status, status)) return;
  save();
  writer_.Put(order.metadata, status);
  written = {std::move(status), now_ns};
}

void StatusReports::Retire(const Session& session) {
  Add(ended_[KeyOf(session)], session.Counts());
  if (ended_.size() > kMaxEndedTraces) ended_.erase(ended_.begin());
}

void StatusReports::Count(const SessionStore& sessions, bool at_once, int64_t now_ns) {
  if (!at_once && now_ns - counted_ns_ < std::chrono::nanoseconds(kCountInterval).count()) return;
  counted_ns_ = now_ns;
  Metrics::Sums sums = ended_;
  for (const auto& [uid, session] : sessions.all()) Add(sums[KeyOf(*session)], session->Counts());
  metrics_.Set(std::move(sums));
}

}  // namespace weft::agent
