// SPDX-License-Identifier: Apache-2.0
// What becomes of each ring set that reaches the agent, announced at a doorbell or found in a
// process's memory. It is identified, its sender is checked, then exactly one of these happens:
//
//     its channel is on, or waits for a Sync   adopted: `adopted` is told, the keeper keeps it
//     it is known already                      the descriptor is dropped
//     no descriptor or no room for it          its contents are counted as lost
//     its channel has ended                    its contents are counted as lost (agent/late_ring)
//     it is no ring set, or not its sender's   refused, with a note
//
// If a process cannot announce its ring set, it writes the ring set's name, the instance and the
// channel, into the doorbell's FIFO. The finder may have found the ring set, may find it later, or
// never. The registry joins all of these by the instance: it adopts or counts each ring set once.
// It counts in tail_unknown the names that no ring set follows, and the ring sets that the finder
// found without room for them and that are gone.
//
// Invariants:
//   1. An instance that was counted, or was read to its end and may come again
//      (SessionChannel::accounted), is never adopted or counted again.
//   2. A count made here is on disk before the keeper is told to drop the ring set, and before the
//      name leaves the FIFO.
//   3. Before Begin nothing is adopted: containers are not known yet, and what arrives waits.
// Ring sets are foreign memory; only the kernel's word on their senders is believed. The agent's
// thread owns it.
#ifndef WEFT_NODE_AGENT_AGENT_DISCOVERY_RING_REGISTRY_H_
#define WEFT_NODE_AGENT_AGENT_DISCOVERY_RING_REGISTRY_H_

#include <cstdint>
#include <functional>
#include <set>
#include <string>
#include <vector>

#include "lib/abi/control.h"
#include "lib/base/token_bucket.h"
#include "lib/base/unique_fd.h"
#include "lib/ipc/messages.h"
#include "node-agent/agent/base/limits.h"
#include "node-agent/agent/discovery/container_lookup.h"
#include "node-agent/agent/discovery/doorbells.h"
#include "node-agent/agent/discovery/finder.h"
#include "node-agent/agent/discovery/huge_pages.h"
#include "node-agent/agent/discovery/processes.h"
#include "node-agent/agent/session/pending_stops.h"
#include "node-agent/agent/session/session_store.h"

namespace weft::agent {

class RingRegistry {
 public:
  // The objects that the registry needs; all must outlive it.
  struct Needs {
    SessionStore& sessions;
    const PendingStops& pending_stops;
    Processes& processes;
    Finder& finder;
    Doorbells& doorbells;
    ContainerLookup& lookup;
    std::function<void(ipc::Message)> keeper;
    std::function<void(std::string)> note;  // a message for people
    // A message about what a container's processes did. `of`: their pod.
    std::function<void(const std::string& of, std::string)> note_of;
    std::function<void(const RingEntry&)> adopted;  // its consumer can be told
  };
  explicit RingRegistry(Needs needs) : needs_(std::move(needs)) {}

  // Says that containers are known from now on: takes the ring sets that arrived before.
  void Begin();
  [[nodiscard]] bool has_begun() const { return has_begun_; }
  // Takes a ring set that a doorbell brought.
  void TakeArrived(ipc::Arrived arrived);
  // Takes a ring set that the finder brought.
  Finder::Verdict TakeFound(FoundMemory found);
  // Called when a consumer has read a ring set to its end, or refused it. `channel`: the ring set's
  // channel if this consumer reads it; nullptr: the channel was retired. Returns false, and does
  // nothing, if the ring set is another consumer's.
  bool Finish(SessionChannel* channel, const ipc::RingDone& done);
  // Called when the writer of a slot went round its ring: moves the ring into huge pages.
  void MoveToHugePages(const ipc::SlotWentRound& slot);
  // Called after a look of the finder: counts ring sets that are known by name and were not found.
  // `all`: also counts those that a later look could find.
  void CountMissing(SessionChannel& channel, bool all);
  // Takes names that wait in the doorbells' FIFOs, up to a bound, and puts on disk what is known by
  // name since the last call. It is called every kTick. Returns false if no name waited.
  bool TakeNames();
  // Takes all names that were written before the call.
  void TakeAllNames();
  // Marks the channel's ring sets as counted: they are done with, but processes still map them.
  void AccountAll(SessionChannel& channel);

 private:
  // Tells the keeper not to keep it any longer.
  void DropKept(const ipc::Arrived& arrived);
  void Take(SessionChannel& channel, ipc::Arrived& arrived, uint64_t instance);
  [[nodiscard]] bool TakesRings(const SessionChannel& channel) const;
  // Takes the name of a ring set that a doorbell brought.
  void TakeName(const weft_doorbell& name, const CallerId& caller);
  void SaveNames();
  void CountUnknown(SessionChannel& channel, uint64_t count);
  // Counts what is in a ring set that no consumer will read, and closes it.
  void AccountLate(SessionChannel& channel, const UniqueFd& ring, uint64_t instance,
                   const char* reason);

  Needs needs_;
  HugePages huge_pages_;
  std::vector<ipc::Arrived> early_;  // before Begin
  bool has_begun_ = false;
  std::set<uint64_t> changed_;  // channels with names that are not on disk
  TokenBucket lock_waits_{kLockWaits, kLockWaitsAtOnce};
};

}  // namespace weft::agent

#endif  // WEFT_NODE_AGENT_AGENT_DISCOVERY_RING_REGISTRY_H_
