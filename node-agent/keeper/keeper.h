// SPDX-License-Identifier: Apache-2.0
// The keeper: starts the agent and the consumers, watches and restarts them, holds their
// descriptors, and answers the doorbell. It interprets no bytes of traced programs.
//
// Start: the agent starts first, since it makes doorbell and control area, and requests consumers;
// a consumer and the agent are connected as soon as both run. A node's end (SIGTERM) begins with
// the agent: it gets Exit, and answers Quit, after kExitTime at the latest. End (Quit): the
// consumers get Exit and kExitTime; then the agent's connection is closed and it gets kExitTime;
// then the session's folder is removed; then the keeper ends. A process that takes longer is
// killed. When the keeper dies, its connections close, and agent and consumers end by themselves.
//
// On a node it holds a lease (lease.h), and another keeper may ask for all that it keeps (heirs.h),
// at once or at its end. Then agent and consumers are killed, after which they can begin nothing
// more, and any of them can go on where they were; what the keeper keeps goes to the heir, then the
// lease. If the heir ends before, or takes longer than kHandoverTime, this keeper goes on.
// One thread; everything runs in the loop's handlers.
#ifndef WEFT_NODE_AGENT_KEEPER_KEEPER_H_
#define WEFT_NODE_AGENT_KEEPER_KEEPER_H_

#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "lib/ipc/child.h"
#include "lib/ipc/descriptor_budget.h"
#include "lib/ipc/loop.h"
#include "lib/ipc/messages.h"
#include "node-agent/keeper/consumer_groups.h"
#include "node-agent/keeper/doorbell.h"
#include "node-agent/keeper/heirs.h"
#include "node-agent/keeper/inheritance.h"
#include "node-agent/keeper/lease.h"
#include "node-agent/keeper/recovery.h"
#include "node-agent/keeper/vault.h"

namespace weft::keeper {

inline constexpr std::chrono::milliseconds kExitTime{10'000};
inline constexpr size_t kMaxConsumers = 1024;
// Said at most so often, and only when new ring sets had to wait for so long.
inline constexpr std::chrono::milliseconds kFullSaid{60'000};
inline constexpr std::chrono::milliseconds kFullTime{1'000};

struct Options {
  std::string
      dir;  // of the session: control area, sockets, state; in a cluster, of the node's state
  std::string bin_dir;  // where weft-agent, weft-node-agent and weft-consumer are
  bool remove_dir = false;
  std::string kubelet_dir;          // not "": this is a node of a cluster
  uint32_t first_consumer_uid = 0;  // not 0: each consumer is a user of its own, from here on
  ipc::DescriptorBudget descriptors;
};

class Keeper {
 public:
  // `owner` is the connection to the process that started the keeper (the cli). Where it ends, the
  // session ends. Without an owner, SIGTERM ends the session, and messages go to standard error.
  // `lease` is held, or is none. `lease` and `groups` outlive this.
  Keeper(ipc::Loop& loop, Options options, ipc::Connection owner, Lease& lease,
         ConsumerGroups& groups, Inheritance inheritance);
  // Blocks SIGCHLD, becomes subreaper, starts the agent. Then run the loop.
  Status Start();
  // On a node, before Start: the keeper that handed over to this one may get all back.
  void KnowPredecessor(ipc::Connection predecessor) { heirs_.Add(std::move(predecessor)); }
  // When the loop has stopped: this keeper has handed over, and was not told to end. Gives the
  // connection to its heir.
  [[nodiscard]] bool is_retired() const { return is_retired_; }
  ipc::Connection TakeHeir() { return heirs_.TakeChosen(); }

 private:
  struct Component {
    std::string name;  // "" for the agent
    std::string program;
    std::vector<std::string> arguments;
    Recovery recovery;
    ipc::Child child;
    bool wanted = true;  // false: its end is no failure
    bool again = false;  // it was not wanted, and is to be started once more when it has ended
    uint32_t uid = 0;
    Time kill_at{};
  };

  void OnChildEnd();
  void OnEnd(Component& component, int status);
  void OnOwner(Result<ipc::Message> message);
  void OnMessage(Component& component, Result<ipc::Message> message);
  void OnAgentMessage(ipc::Message message);
  void OnHello(const ipc::Hello& hello);

  void Tick();
  void Start(Component& component);
  void Connect(Component& consumer);
  void CloseChannel(Component& component);
  void StartConsumer(const std::string& name);
  void StopConsumer(const std::string& name);
  [[nodiscard]] uint32_t FreeUid() const;
  void Listen(ipc::ListenDoorbell listen);
  void TellAgent();
  // Passes on what doorbells brought before a Sync. False: not all of it yet. Never in a doorbell's
  // handler.
  bool SettleSyncs();
  // Doorbells that stopped for want of descriptors go on where there is room.
  void AnswerPaused();
  void BeginHandover();
  // Goes on when all children have ended.
  void ContinueHandover();
  void TellHeir();
  void EndHandover(bool taken);
  [[nodiscard]] bool has_children() const;
  [[nodiscard]] bool is_handing_over() const { return hand_over_by_ != Time::max(); }
  void TellOwner(std::string component, std::string message);
  void SayFull(Time now);
  void End();
  void Quit();
  void ContinueQuit();
  void RemoveDir() const;

  ipc::Loop& loop_;
  Options options_;
  ipc::Connection owner_;
  UniqueFd signals_;
  Lease& lease_;
  ConsumerGroups& groups_;
  Vault vault_;
  SilentCallers silent_;  // of doorbells that are not there yet
  std::map<std::string, std::unique_ptr<Doorbell>> doorbells_;
  Component agent_;
  std::map<std::string, std::unique_ptr<Component>> consumers_;
  std::vector<uint64_t> syncs_;  // asked for and not answered
  Time sync_since_{};            // the first of them
  Time still_since_{};           // the last time that the vault's dropped_ was another
  uint64_t dropped_ = 0;
  bool kept_complete_ = false;  // said to the present agent
  bool owner_gone_ = false;
  bool owner_told_ = false;
  Time say_full_at_{};          // the next time at the earliest
  Time quit_by_ = Time::max();  // the agent was told that all ends
  bool quitting_ = false;
  Heirs heirs_;
  Time hand_over_by_ = Time::max();  // an heir gets all
  bool telling_heir_ = false;        // no child runs
  bool heir_knows_all_ = false;
  bool is_ending_ = false;  // at SIGTERM
  bool is_retired_ = false;
};

}  // namespace weft::keeper

#endif  // WEFT_NODE_AGENT_KEEPER_KEEPER_H_
