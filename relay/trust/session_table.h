// SPDX-License-Identifier: Apache-2.0
// Which node records which Trace, as the API server's TraceSessions say. The table is filled by an
// informer (gate.h). When the API server is away, it keeps what it knew.
// Thread-safety: all functions may be called from any thread.
#ifndef WEFT_RELAY_TRUST_SESSION_TABLE_H_
#define WEFT_RELAY_TRUST_SESSION_TABLE_H_

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "lib/kube/json.h"
#include "lib/kube/watch_decoder.h"
#include "lib/stream/control.h"

namespace weft::relay_trust {

// A node may still send so long after its TraceSession was deleted: an agent gives up 60 s after
// that, and a relay that was away for a moment comes back to such a node, too.
inline constexpr std::chrono::seconds kLastDelivery{120};

// What a Trace lets the relay keep of it (its `storage`); 0: as much as the relay's own limits
// allow.
struct TraceStorage {
  std::uint64_t bytes = 0;
  std::chrono::seconds age{0};
  bool operator==(const TraceStorage&) const = default;
};

class SessionTable {
 public:
  using Clock = std::chrono::steady_clock;
  using Now = std::function<Clock::time_point()>;

  enum class State {
    kUnknown,  // the API server has not answered yet
    kAbsent,
    kPresent,  // also for kLastDelivery after its end
  };

  explicit SessionTable(Now now = [] { return Clock::now(); }) : now_(std::move(now)) {}

  // All that there are.
  void Replace(const std::vector<kube::Json>& sessions);
  void See(const kube::WatchEvent& event);

  // Is there a TraceSession of this node for this Trace?
  [[nodiscard]] State Find(const stream::Hello& hello) const;
  // What the TraceSession of a node and Trace says about storage; {} where there is none.
  [[nodiscard]] TraceStorage StorageOf(const stream::Hello& hello) const;

 private:
  // Node, namespace, name and uid of the Trace, with '/' between them: none of them has one.
  using Key = std::string;
  static Key KeyOf(const kube::Json& session);
  struct Known {
    Clock::time_point end;  // until when; the largest time: it has not ended
    TraceStorage storage;
  };

  const Now now_;
  mutable std::mutex mutex_;
  bool is_known_ = false;
  std::map<Key, Known> sessions_;
};

}  // namespace weft::relay_trust

#endif  // WEFT_RELAY_TRUST_SESSION_TABLE_H_
