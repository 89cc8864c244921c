// SPDX-License-Identifier: Apache-2.0
// The life of channels, from defined to drained (session/session.h), in step with what they need:
// control areas, weft.ko, consumers, the keeper.
//
// The end of a channel, in this order: it is `stopping` in the session's file; it is off in the
// control areas and in weft.ko; the keeper answers a Sync, so that every ring set announced before
// is adopted; a look at all processes finds those that could not be announced; the consumer
// reads the channel to its end; its counts are on disk; its descriptors are dropped.
//
// Invariants:
//   1. A change of phase is on disk before any process outside the agent learns of it, except for a
//      consumer's ChannelDefinition, which the next agent repeats.
//   2. Each step may be done twice: where an agent died in the middle, Resume of the next goes on.
//   3. A Sync that is answered before ring sets are taken (RingRegistry::Begin) counts from then.
// The agent's thread owns it.
#ifndef WEFT_NODE_AGENT_AGENT_CORE_CHANNEL_LIFECYCLE_H_
#define WEFT_NODE_AGENT_AGENT_CORE_CHANNEL_LIFECYCLE_H_

#include <cstdint>
#include <functional>
#include <string>
#include <utility>

#include "lib/ipc/loop.h"
#include "lib/ipc/messages.h"
#include "node-agent/agent/consumers/consumer_notifier.h"
#include "node-agent/agent/consumers/consumer_pool.h"
#include "node-agent/agent/discovery/control_areas.h"
#include "node-agent/agent/discovery/finder.h"
#include "node-agent/agent/discovery/processes.h"
#include "node-agent/agent/discovery/ring_registry.h"
#include "node-agent/agent/kernel/kernel_sessions.h"
#include "node-agent/agent/session/pending_stops.h"
#include "node-agent/agent/session/session_listener.h"
#include "node-agent/agent/session/session_store.h"

namespace weft::agent {

class ChannelLifecycle {
 public:
  using Which = std::function<bool(const SessionChannel&)>;

  // The objects that channels need; all must outlive this object.
  struct Needs {
    ipc::Loop& loop;
    SessionListener& listener;
    std::function<void(ipc::Message)> keeper;
    SessionStore& sessions;
    PendingStops& pending_stops;
    ControlAreas& areas;
    KernelSessions& kernel;
    Processes& processes;
    Finder& finder;
    RingRegistry& rings;
    ConsumerPool& consumers;
    ConsumerNotifier& notifier;
  };
  explicit ChannelLifecycle(Needs needs) : needs_(std::move(needs)) {}

  // Turns the session's channels that are defined on.
  void Start(Session& session);
  // Begins kernel channels again that weft.ko refused a ring: others' rings may have ended.
  void RetryKernel();
  // Turns these channels off, and reads them to their end.
  void Stop(const Which& which);
  // Drains these channels, as far as they are stopping, without their consumer: what they have that
  // is not written counts as lost, "STAGE/REASON".
  void GiveUp(const Which& which, const std::string& stage, const std::string& reason);

  // Does again what an agent before may have left half done.
  void Resume();
  // Stops channels whose time is over, and consumers of channels whose Sync takes long.
  void Tick(int64_t now_ns);
  // Looks for memory that was not announced, while there are channels to record it.
  void Look();
  // Called when the keeper has answered this Sync.
  void OnSynced(uint64_t number);
  // Ring sets are taken from now on.
  void OnRingsBegun() { OnSynced(synced_); }

  // Called when a consumer reports this of a channel.
  void OnReady(const ConsumerLink& link, const ipc::ChannelReady& ready);
  void OnStats(const ConsumerLink& link, ipc::Stats stats);
  void OnDrained(ConsumerLink& link, ipc::Drained drained);

 private:
  void BeginKernel(Session& session, SessionChannel& channel);
  void GiveUpRefused();

  const Needs needs_;
  uint64_t synced_ = 0;  // the last Sync that was answered before ring sets were taken
};

}  // namespace weft::agent

#endif  // WEFT_NODE_AGENT_AGENT_CORE_CHANNEL_LIFECYCLE_H_
