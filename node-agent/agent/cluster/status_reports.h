// SPDX-License-Identifier: Apache-2.0
// What a node reports of its sessions: their statuses, to the API server, and their counts, to
// /metrics.
//
// Invariants:
//   1. A status is written when more than its counts changed; for counts alone, at most every
//      kCountsSaid.
//   2. No count of a status falls below what was reported before, by this agent or by another one.
//      A consumer that was started again, or an agent that goes on from its session's file, may
//      know less for a moment.
//   3. The session's counts are on disk before they are reported: the next agent goes on from them,
//      not from older ones.
//   4. Counters of /metrics never fall: what a forgotten session counted stays, as long as there is
//      room (kMaxEndedTraces).
// The agent's thread owns it; /metrics is asked from any thread.
#ifndef WEFT_NODE_AGENT_AGENT_CLUSTER_STATUS_REPORTS_H_
#define WEFT_NODE_AGENT_AGENT_CLUSTER_STATUS_REPORTS_H_

#include <cstdint>
#include <functional>
#include <map>
#include <string>

#include "lib/api/session.h"
#include "node-agent/agent/cluster/metrics.h"
#include "node-agent/agent/cluster/status_writer.h"
#include "node-agent/agent/session/session_store.h"

namespace weft::agent {

class StatusReports {
 public:
  // `client` outlives this.
  explicit StatusReports(kube::Client& client) : writer_(client) {}

  // Writes the session's status, if it is due; before that, calls `save`, which writes the
  // session's file.
  void Report(
      const api::TraceSession& order, api::SessionStatus status, int64_t now_ns,
      const std::function<void()>& save = [] {});
  // The session is about to be removed: keeps its counts.
  void Retire(const Session& session);
  // Its statuses are of no use any more.
  void Forget(const std::string& uid) { written_.erase(uid); }
  // Sums up the counts of all sessions, every kCountInterval or, with `at_once`, now.
  void Count(const SessionStore& sessions, bool at_once, int64_t now_ns);

  [[nodiscard]] Metrics& metrics() { return metrics_; }
  [[nodiscard]] const Metrics& metrics() const { return metrics_; }

 private:
  // The last status of a session that was given to the writer, and when.
  struct WrittenStatus {
    api::SessionStatus status;
    int64_t at_ns = 0;
  };

  StatusWriter writer_;
  Metrics metrics_;
  std::map<std::string, WrittenStatus> written_;  // by session's uid
  Metrics::Sums ended_;                           // of sessions that were removed
  int64_t counted_ns_ = 0;
};

}  // namespace weft::agent

#endif  // WEFT_NODE_AGENT_AGENT_CLUSTER_STATUS_REPORTS_H_
