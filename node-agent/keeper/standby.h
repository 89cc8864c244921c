// SPDX-License-Identifier: Apache-2.0
// A keeper that does not hold its node's lease (lease.h): it has no agent and no consumer, waits
// for the lease, and takes what the holder hands over (lib/ipc/messages.h). Meanwhile
// `weft-node-agent --standby` answers the kubelet's probes.
//
//     new, or again: asks the holder for all, at once    --> inheritance, lease
//     retired, it has handed over: waits for the end of the keeper that holds the lease
//
// In a rolling update the new pod takes over from the old one, which is retired until Kubernetes
// ends it. If the new pod ends first, the old one goes on.
// One thread; everything runs in the loop's handlers.
#ifndef WEFT_NODE_AGENT_KEEPER_STANDBY_H_
#define WEFT_NODE_AGENT_KEEPER_STANDBY_H_

#include <string>
#include <vector>

#include "lib/ipc/child.h"
#include "lib/ipc/loop.h"
#include "node-agent/keeper/inheritance.h"
#include "node-agent/keeper/keeper.h"
#include "node-agent/keeper/lease.h"

namespace weft::keeper {

class Standby {
 public:
  // `holder`: a connection to the keeper that holds the lease, if there is one already.
  // `is_retired`: the holder took over from this process.
  Standby(ipc::Loop& loop, const Options& options, Lease& lease, bool is_retired,
          ipc::Connection holder);
  ~Standby();
  Standby(const Standby&) = delete;
  Standby& operator=(const Standby&) = delete;

  // Blocks SIGCHLD and SIGTERM. Then run the loop, which stops when the lease is held, or at
  // SIGTERM.
  Status Start();
  [[nodiscard]] bool has_ended() const { return has_ended_; }  // by SIGTERM
  Inheritance TakeInheritance() { return std::move(inheritance_); }
  // The connection to the keeper that handed over; closed: there is none.
  ipc::Connection TakePredecessor();

 private:
  void Tick();
  void OnSignal();
  void OnHolder(Result<ipc::Message> message);
  void WatchHolder();
  void StartProbes();
  void EndProbes();

  ipc::Loop& loop_;
  const Options& options_;
  Lease& lease_;
  const bool is_retired_;
  ipc::Connection holder_;
  bool took_over_ = false;  // all is here but the lease
  bool has_same_version_ = false;
  Inheritance inheritance_;
  ipc::Child probes_;  // weft-node-agent --standby
  UniqueFd signals_;
  ipc::Loop::TimerId look_ = 0;
  bool has_ended_ = false;
};

}  // namespace weft::keeper

#endif  // WEFT_NODE_AGENT_KEEPER_STANDBY_H_
