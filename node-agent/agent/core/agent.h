// SPDX-License-Identifier: Apache-2.0
// The agent as a process: its keeper, its start and end, its timers. Its parts (agent_parts.h) do
// the work: sessions and their channels, control areas in which channels are in force, consumers
// that read them. The code that decides (local/, cluster/) holds the agent, calls its parts, and
// is told of events (agent_listener.h).
//
// Start:  the keeper repeats what it kept; AgentListener::Restore brings back, or makes,
//         containers, sessions and sockets; then Hello. A session is recording when its rules are
//         published and its consumers have acknowledged every channel.
// End:    on Exit the rings of weft.ko are read to their end, or kLastDrainWait passes; then Quit.
//
// Invariants:
//   1. Everything here may happen twice: if an agent dies at any point, the next one repeats what
//      is not finished.
//   2. Before the keeper has repeated everything the parts are only filled, and only
//      AgentListener::TakeKept records or reports anything.
// One thread: all of it runs in the loop's handlers.
#ifndef WEFT_NODE_AGENT_AGENT_CORE_AGENT_H_
#define WEFT_NODE_AGENT_AGENT_CORE_AGENT_H_

#include <cstdint>
#include <memory>
#include <string>

#include "lib/ipc/loop.h"
#include "lib/ipc/messages.h"
#include "node-agent/agent/core/agent_listener.h"
#include "node-agent/agent/core/agent_parts.h"

namespace weft::agent {

class Agent {
 public:
  // `dir`: for sessions' files; `keeper`: the connection to it; `journals`: the place where
  // journals outlive the keeper. `loop` must outlive this object.
  Agent(ipc::Loop& loop, std::string dir, ipc::Connection keeper,
        JournalFiles journals = JournalFiles());
  // Makes the parts and listens to the keeper. `listener` and `lookup` outlive the loop's run.
  Status Start(AgentListener& listener, ContainerLookup& lookup);

  [[nodiscard]] ipc::Loop& loop() { return loop_; }
  // Sends a message to the keeper, which reads at once or is gone; then OnKeeper ends the agent.
  void ToKeeper(ipc::Message message) { (void)keeper_.Send(std::move(message)); }
  // From Start on.
  [[nodiscard]] AgentParts& parts() { return *parts_; }
  [[nodiscard]] const AgentParts& parts() const { return *parts_; }
  // Returns how often the agent or a consumer was started again.
  [[nodiscard]] uint64_t recoveries() const { return recoveries_; }

  // Says that the lookup knows the containers from now on: ring sets that came meanwhile are taken.
  void TakeArrivals();
  // Call it when all is done: the keeper ends every process.
  void Quit();
  // Is everything ending in order? Then nothing may begin any more.
  [[nodiscard]] bool is_ending() const { return quit_by_ns_ != 0; }

 private:
  void OnKeeper(Result<ipc::Message> message);
  void OnKept(ipc::Kept kept);
  void OnKeptComplete();
  Status Restore();
  void OnConsumerGone(const ipc::ConsumerGone& gone);
  void Tick();
  void End();

  ipc::Loop& loop_;
  const std::string dir_;
  const JournalFiles journals_;
  ipc::Connection keeper_;
  AgentListener* listener_ = nullptr;  // from Start on, with parts_
  std::unique_ptr<AgentParts> parts_;
  uint64_t life_ = 0;  // number of this agent among those of its keeper
  uint64_t recoveries_ = 0;
  uint64_t handled_ = 0;  // the keeper's messages: progress, for heartbeats
  bool complete_ = false;
  int64_t quit_by_ns_ = 0;  // CLOCK_MONOTONIC; 0: the keeper did not say Exit
  bool quit_sent_ = false;
};

}  // namespace weft::agent

#endif  // WEFT_NODE_AGENT_AGENT_CORE_AGENT_H_
