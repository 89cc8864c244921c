// SPDX-License-Identifier: Apache-2.0
// A session: Traces, their channels, how far each is, what was counted. It is on disk before any
// command about it is answered, and comes back from there after a crash.
//
// A channel's life:     defined --Start--> on --Stop, duration over--> stopping --Drained--> drained
// Published (lib/control) are exactly the channels that are `on`.
// The agent's thread owns it.
#ifndef WEFT_NODE_AGENT_AGENT_SESSION_H_
#define WEFT_NODE_AGENT_AGENT_SESSION_H_

#include <chrono>
#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "lib/base/result.h"
#include "lib/control/ruleset.h"
#include "lib/ipc/messages.h"

namespace weft::agent {

enum class ChannelPhase : uint8_t { kDefined, kOn, kStopping, kDrained };

struct SessionChannel {
  control::ChannelSpec spec;
  ipc::ChannelDefinition definition;
  ChannelPhase phase = ChannelPhase::kDefined;
  bool paused = false;    // never turned on
  bool snapshot = false;  // read once, at the end: what the buffers hold then
  bool ready = false;     // the consumer said so (in this life of the agent)
  std::optional<std::chrono::nanoseconds> duration;
  int64_t stop_at_ns = 0;        // CLOCK_MONOTONIC; 0: no deadline
  ipc::ChannelCounts reported;   // the consumer's last
  ipc::ChannelCounts own;        // what the agent counted itself
  std::set<uint64_t> accounted;  // instances in `own`

  [[nodiscard]] ipc::ChannelCounts Counts() const;  // the sum
};

class Session {
 public:
  // What a CreateSession and this machine make of it. kInvalid: what is wrong with the Traces, all of
  // it, a line each.
  static Result<Session> Create(const ipc::CreateSession& command, const std::string& traces);
  // From `path`; kNotFound: there is no session.
  static Result<Session> Load(const std::string& path);
  // In one step (rename), synced.
  Status Save(const std::string& path) const;

  [[nodiscard]] SessionChannel* Find(uint64_t channel_id);
  [[nodiscard]] std::vector<control::ChannelSpec> Published() const;
  [[nodiscard]] ipc::Phase phase() const;
  [[nodiscard]] ipc::SessionState State() const;  // without processes, recoveries, live notices

  std::vector<SessionChannel> channels;
  std::vector<std::string> notices;
  std::string output;  // the folder; "": there is a relay
  ipc::RelayAddress relay;
  int64_t realtime_offset_ns = 0;
  ipc::Uuid clock_uuid{};
  uint64_t lives = 1;  // of the agent for this session; the upper half of process numbers

 private:
  static Result<Session> Compile(const ipc::CreateSession& command, const std::string& traces,
                                 const std::string& created);

  std::string traces_;  // the text
  std::string file_;
  std::string ctf_version_;
  std::string programs_;
  std::string created_;
  uint32_t uid_ = 0;
};

// This boot's clock, so that all traces of a boot can be merged.
ipc::Uuid BootUuid();
// CLOCK_REALTIME - CLOCK_MONOTONIC now, ns.
int64_t RealtimeOffset();
// CLOCK_MONOTONIC now, ns.
int64_t MonotonicNow();

}  // namespace weft::agent

#endif  // WEFT_NODE_AGENT_AGENT_SESSION_H_
