// SPDX-License-Identifier: Apache-2.0
// The parts of the agent, each with its own header, and how they are connected. The code that
// decides (local/, cluster/) calls them; they report to the listener that they were made with.
//
// Calls go down: a part holds parts that stand above it in this list, and reports by callbacks.
// The agent's thread owns them all.
#ifndef WEFT_NODE_AGENT_AGENT_CORE_AGENT_PARTS_H_
#define WEFT_NODE_AGENT_AGENT_CORE_AGENT_PARTS_H_

#include <functional>
#include <string>

#include "lib/base/log_rate.h"
#include "lib/ipc/loop.h"
#include "lib/ipc/messages.h"
#include "node-agent/agent/base/limits.h"
#include "node-agent/agent/consumers/consumer_notifier.h"
#include "node-agent/agent/consumers/consumer_pool.h"
#include "node-agent/agent/consumers/consumer_requests.h"
#include "node-agent/agent/core/channel_lifecycle.h"
#include "node-agent/agent/discovery/attached_processes.h"
#include "node-agent/agent/discovery/container_lookup.h"
#include "node-agent/agent/discovery/control_areas.h"
#include "node-agent/agent/discovery/doorbells.h"
#include "node-agent/agent/discovery/finder.h"
#include "node-agent/agent/discovery/memory_pools.h"
#include "node-agent/agent/discovery/processes.h"
#include "node-agent/agent/discovery/ring_registry.h"
#include "node-agent/agent/kernel/kernel_sessions.h"
#include "node-agent/agent/session/pending_stops.h"
#include "node-agent/agent/session/session_listener.h"
#include "node-agent/agent/session/session_store.h"

namespace weft::agent {

class AgentParts {
 public:
  using Send = std::function<void(ipc::Message)>;  // to the keeper

  // `dir`: for sessions' files. `loop`, `listener` and `lookup` must outlive this object.
  AgentParts(ipc::Loop& loop, std::string dir, const JournalFiles& journals, const Send& keeper,
             SessionListener& listener, ContainerLookup& lookup);
  AgentParts(const AgentParts&) = delete;
  AgentParts& operator=(const AgentParts&) = delete;

  // Takes a descriptor that the keeper kept for one of the parts. A descriptor that no part knows
  // is closed.
  void TakeKept(ipc::Kept& kept);
  // Gives containers back what their ring sets do not use any more. Every kLookInterval.
  void SettleMemory();
  // Call it when the listener has restored sessions and containers: the parts take up what was kept
  // for them.
  void Restored();

  SessionStore sessions;
  PendingStops pending_stops;
  Finder finder;
  Doorbells doorbells;
  ControlAreas areas;
  MemoryPools pools;
  AttachedProcesses attached;
  KernelSessions kernel;
  Processes processes;
  RingRegistry rings;
  ConsumerPool consumers;
  ConsumerRequests requests;
  ConsumerNotifier notifier;
  ChannelLifecycle channels;

 private:
  Finder::Verdict OnFound(FoundMemory found);
  void OnConsumer(ConsumerLink& link, ipc::Message message);
  // Passes on a message about what a pod's processes or a consumer did (`of`). Returns false: there
  // were too many about them, and this one is left out.
  bool NoteOf(const std::string& of, const std::string& text);

  const Send keeper_;
  SessionListener& listener_;
  ContainerLookup& lookup_;
  LogRate notes_{kNotesPerSecond, kNotesAtOnce, kMaxNoted};
};

}  // namespace weft::agent

#endif  // WEFT_NODE_AGENT_AGENT_CORE_AGENT_PARTS_H_
