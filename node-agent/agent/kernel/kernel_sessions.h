// SPDX-License-Identifier: Apache-2.0
// The kernel channels of sessions: made in weft.ko, turned on and off, scoped to cgroups, and their
// ends and missed hits reported. kernel_channels.h has the descriptors; this has what the sessions
// say about them.
//
// Invariants:
//   1. weft.ko never records more of a channel than the session's file says: a cgroup is on disk
//      before it comes into scope and until it has left it.
//   2. A channel that is on has a session in weft.ko, or a `failure`. If the session went with the
//      keeper, the next agent ends the channel. A consumer that goes on with its journal counts it;
//      without one, the agent counts what was in flight as lost.
// The agent's thread owns it. Calls into the module may take milliseconds.
#ifndef WEFT_NODE_AGENT_AGENT_KERNEL_KERNEL_SESSIONS_H_
#define WEFT_NODE_AGENT_AGENT_KERNEL_KERNEL_SESSIONS_H_

#include <cstdint>
#include <functional>
#include <set>
#include <utility>

#include "lib/abi/ring.h"
#include "lib/base/result.h"
#include "node-agent/agent/kernel/kernel_channels.h"
#include "node-agent/agent/session/session_listener.h"
#include "node-agent/agent/session/session_store.h"

namespace weft::agent {

class KernelSessions {
 public:
  using Clock = std::function<uint32_t()>;  // weft_clock_id of new rings

  // `sessions` and `listener` must outlive this object.
  KernelSessions(SessionStore& sessions, SessionListener& listener, KernelChannels::Send keeper,
                 Clock clock)
      : sessions_(sessions),
        listener_(listener),
        clock_(std::move(clock)),
        channels_(std::move(keeper)) {}

  // Makes the session's rings and events in weft.ko, which record nothing yet. A refusal is found
  // here, early enough to leave no trace: an error names it, and nothing is left.
  Status Make(const Session& session);
  void Forget(const Session& session);
  void Forget(const SessionChannel& channel) { channels_.Forget(channel.definition.id); }

  // Makes what is still missing of a channel that begins. False: weft.ko refused it; the channel's
  // `failure` says why, and the listener was told.
  bool Prepare(Session& session, SessionChannel& channel);
  // Turns a prepared channel on, unless it is paused, and records the state that exists already.
  void TurnOn(const Session& session, const SessionChannel& channel);
  void TurnOff(const SessionChannel& channel) { Switch(channel, false); }
  // Turns the session's channels that are on off where it is paused, and on where it is not.
  void ApplyPaused(const Session& session);

  // Sets the cgroups whose tasks a channel that is on records from now on. If a change fails, the
  // error is returned, and the next call tries it again.
  Status SetScope(SessionChannel& channel, const std::set<uint64_t>& cgroups);
  // Adds an event to a channel that is on.
  Status AddEvent(const SessionChannel& channel, const kernel::Event& event);
  // Records the state that exists already, in the channels whose Traces ask for it.
  void DumpState(const Session& session);

  // Takes a descriptor that the keeper kept; false: it is none of weft.ko's.
  bool TakeKept(ipc::Kept& kept) { return channels_.Restore(kept); }
  // Called when all that the keeper kept was restored and the sessions are loaded. `goes_on`: does
  // the channel's consumer have the journal of before?
  void Restored(const std::function<bool(const SessionChannel&)>& goes_on = [](const auto&) {
    return false;
  });
  // Notes why state dumps failed.
  void ReportProblems();
  // Takes over what weft.ko ended by itself and what it missed, and reports it.
  void ReportNews();

  // Returns the channel's ring, for consumers.
  [[nodiscard]] KernelChannels::RingOf FindRing(uint64_t channel) const {
    return channels_.Find(channel);
  }

 private:
  Status MakeChannel(const Session& session, const SessionChannel& channel);
  void Switch(const SessionChannel& channel, bool on);
  void DumpStateOf(const SessionChannel& channel, uint64_t cgroup = 0);

  SessionStore& sessions_;
  SessionListener& listener_;
  const Clock clock_;
  KernelChannels channels_;
};

}  // namespace weft::agent

#endif  // WEFT_NODE_AGENT_AGENT_KERNEL_KERNEL_SESSIONS_H_
