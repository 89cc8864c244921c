// SPDX-License-Identifier: Apache-2.0
// Tells consumers what to read: channels, their ring sets and rings of weft.ko, ends of processes
// and of channels. Repeats all of it on each new connection.
//
// Invariants:
//   1. A consumer is told of a channel before its rings, and of a ring before the end of its
//      process.
//   2. The ring sets of a snapshot's channel are told only when the channel stops.
//   3. StateComplete follows only after a look for ring sets that the keeper does not have. A
//      consumer counts what its journal names and the agent did not tell as gone.
//   4. A message that carries a descriptor is made when there is room for it, so that the
//      descriptor is copied only then; a ring set that is done with by then is not told.
// The agent's thread calls.
#ifndef WEFT_NODE_AGENT_AGENT_CONSUMERS_CONSUMER_NOTIFIER_H_
#define WEFT_NODE_AGENT_AGENT_CONSUMERS_CONSUMER_NOTIFIER_H_

#include <cstdint>

#include "node-agent/agent/consumers/consumer_pool.h"
#include "node-agent/agent/discovery/control_areas.h"
#include "node-agent/agent/discovery/processes.h"
#include "node-agent/agent/kernel/kernel_sessions.h"
#include "node-agent/agent/session/pending_stops.h"
#include "node-agent/agent/session/session_store.h"

namespace weft::agent {

class ConsumerNotifier {
 public:
  // All outlive this.
  struct Needs {
    ConsumerPool& consumers;
    SessionStore& sessions;
    const PendingStops& pending_stops;
    const Processes& processes;
    const KernelSessions& kernel;
    const ControlAreas& areas;
  };
  explicit ConsumerNotifier(const Needs& needs) : needs_(needs) {}

  void TellChannel(const SessionChannel& channel);
  void TellRing(const RingEntry& ring);
  // A channel's ring of weft.ko.
  void TellKernelRing(const SessionChannel& channel);
  // To the consumers of the process's ring sets: what is in them is final.
  void TellProcessGone(const ProcessEntry& process);
  // The consumer shall read the channel to its end.
  void TellStop(const SessionChannel& channel);
  // All that the consumer has to know, after its Hello.
  void TellAll(ConsumerLink& link);
  // All ring sets that were there when the agent began are known.
  void NoteRingsKnown();

 private:
  [[nodiscard]] bool IsHeldBack(const SessionChannel& channel) const;

  const Needs needs_;
  bool rings_known_ = false;
};

}  // namespace weft::agent

#endif  // WEFT_NODE_AGENT_AGENT_CONSUMERS_CONSUMER_NOTIFIER_H_
