// SPDX-License-Identifier: Apache-2.0
// The agent: sessions with their channels, containers in which channels are in force, consumers
// that read them. It publishes rules, hands ring sets from doorbells to consumers, opens files and
// connections for them. What is to be recorded it is told by its Orders: the cli's in local mode,
// the API server's in a cluster; all else is the same.
//
// Start:  the keeper repeats what it kept; Orders::Open brings back, or makes, containers, sessions
//         and
// sockets; then Hello. A session is recording when its rules are published and its consumers have
// acknowledged every channel.
// A channel's end: rules without it; Sync and a look at all processes, so that every ring set that
// was made before is known; StopChannel; Drained. A crash at any point is mended by the next agent,
// which does again what is not finished: everything here may happen twice. One thread: all of it
// runs in the loop's handlers.
#ifndef WEFT_NODE_AGENT_AGENT_CORE_AGENT_H_
#define WEFT_NODE_AGENT_AGENT_CORE_AGENT_H_

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "lib/ipc/loop.h"
#include "lib/ipc/messages.h"
#include "node-agent/agent/consumers/consumer_link.h"
#include "node-agent/agent/consumers/dialer.h"
#include "node-agent/agent/consumers/output_folder.h"
#include "node-agent/agent/core/orders.h"
#include "node-agent/agent/discovery/containers.h"
#include "node-agent/agent/discovery/finder.h"
#include "node-agent/agent/discovery/huge_pages.h"
#include "node-agent/agent/discovery/processes.h"
#include "node-agent/agent/kernel/kernel_channels.h"
#include "node-agent/agent/session/session.h"

namespace weft::agent {

class Agent {
 public:
  using Sessions = std::map<std::string, std::unique_ptr<Session>>;
  using Which = std::function<bool(const SessionChannel&)>;

  // `dir`: of sessions' files; `keeper`: the channel to it.
  Agent(ipc::Loop& loop, std::string dir, ipc::Channel keeper);
  // `orders` outlives the loop's run.
  Status Start(Orders& orders);

  // --- for Orders ---

  [[nodiscard]] ipc::Loop& loop() { return loop_; }
  [[nodiscard]] const std::string& dir() const { return dir_; }
  // The keeper reads at once or is gone; then OnKeeper ends the agent.
  void ToKeeper(ipc::Message message) { (void)keeper_.Send(std::move(message)); }

  // Sessions, each with a file in `dir`, DIR/NAME.json (sessions.cc).
  [[nodiscard]] const Sessions& sessions() const { return sessions_; }
  [[nodiscard]] Session* FindSession(const std::string& name);
  Status LoadSession(const std::string& name);  // kNotFound: there is none
  Status AddSession(const std::string& name, Session session);
  void RemoveSession(const std::string& name);
  // Channels whose consumer's journal went with the keeper go on in traces of their own.
  void RenewWithoutJournal();
  Status Save(const Session& session);
  // Where a local session's files go, when there is no relay.
  void SetOutput(OutputFolder folder) { output_.emplace(std::move(folder)); }

  // Makes the session's rings and events in weft.ko, which record nothing yet: what the kernel
  // refuses, StartChannels would find out too late to leave no trace. An error names it, and
  // nothing is left.
  Status MakeInKernel(const Session& session);
  void ForgetInKernel(const Session& session);
  // Turns channels that are defined on; then off, and reads them to their end.
  void StartChannels(Session& session);
  void StopChannels(const Which& which);
  // Whose events a kernel channel that is on records from now on; what could not be changed is
  // tried again with the next call. Then whether it records at all.
  Status SetKernelScope(SessionChannel& channel, const std::set<uint64_t>& cgroups);
  void ApplyPaused(Session& session);
  // One more event of a kernel channel that is on.
  Status AddKernelEvent(const SessionChannel& channel, const kernel::Event& event);
  // What these channels have that is not written is given up and counted as lost: "stage/reason".
  // Channels that are stopping only.
  void GiveUp(const Which& which, const std::string& stage, const std::string& reason);
  // Those whose output the consumer cannot make.
  void GiveUpRefused();

  // Channels of weft.ko's that are on record what is there, where their Traces ask for that.
  void DumpState(const Session& session);

  // Containers (containers.cc of the agent's): made known, published, looked at by the finder.
  [[nodiscard]] Containers& containers() { return containers_; }
  Status OpenContainer(const std::string& key, const std::string& path);
  void CloseContainer(const std::string& key);
  Status Publish(const std::string& container);
  // A socket of this name in this folder, whose callers the keeper answers; kept.
  Status OpenDoorbell(const std::string& name, const std::string& folder);
  [[nodiscard]] std::vector<std::string> Doorbells() const;
  void CloseDoorbell(const std::string& name);
  // A listening socket FOLDER/NAME.
  static Result<UniqueFd> Listen(const std::string& folder, const std::string& name, unsigned mode);

  // The consumer of this name runs from now on.
  void StartConsumer(const std::string& name);
  void StopConsumer(const std::string& name);
  [[nodiscard]] const ConsumerLink* FindConsumer(const std::string& name) const;

  [[nodiscard]] Finder& finder() { return finder_; }
  [[nodiscard]] const Processes& processes() const { return processes_; }
  [[nodiscard]] uint64_t recoveries() const { return recoveries_; }
  void AddRoot(int32_t pid, UniqueFd pidfd);
  void RemoveRoots(const std::vector<int32_t>& pids);
  // Looks at members; why memory of one was not adopted.
  Status LookForControls();
  // From now on the orders can say whose a ring set is: those that came meanwhile are taken.
  void TakeArrivals();
  void Look();
  void Quit();
  // All ends in order: nothing is to be begun any more.
  [[nodiscard]] bool is_ending() const { return quit_by_ns_ != 0; }

 private:
  // keeper (agent.cc)
  void OnKeeper(Result<ipc::Message> message);
  void OnKept(ipc::Kept kept);
  void OnKeptComplete();
  Status MakeReady();
  void Resume();
  void OnConsumerGone(const ipc::ConsumerGone& gone);
  void Tick();
  void End();
  void ReportKernel();  // what weft.ko ended by itself, and that it missed hits

  // ring sets (rings.cc)
  void OnArrived(ipc::Arrived arrived);
  void TakeRing(SessionChannel& channel, ipc::Arrived& arrived, uint64_t instance);
  [[nodiscard]] bool TakesRings(const SessionChannel& channel) const;
  void CountUnannounced(SessionChannel& channel, uint64_t count);
  // Counts what is in a ring set that no consumer will read, and closes it.
  void AccountLate(SessionChannel& channel, const UniqueFd& ring, uint64_t instance,
                   const char* reason);

  // memory that was not announced (found.cc)
  Finder::Verdict OnFound(FoundMemory found);
  Status AdoptControl(const std::string& container, UniqueFd fd, uint64_t inode);
  void DropControl(uint64_t inode);
  bool RestoreFound(ipc::Kept& kept);
  void RestoredFound();
  void AccountRings(SessionChannel& channel);

  // consumers (consumers.cc)
  void OnConnect(ipc::Connect connect);
  void OnConsumer(ConsumerLink& link, Result<ipc::Message> message);
  void OnRingDone(ConsumerLink& link, const ipc::RingDone& done);
  void OnSlotWentRound(ConsumerLink& link, const ipc::SlotWentRound& said);
  void OnFileRequest(ConsumerLink& link, const ipc::FileRequest& request);
  void OnConnectionRequest(ConsumerLink& link, const ipc::ConnectionRequest& request);
  [[nodiscard]] const ipc::RelayAddress* RelayOf(const ConsumerLink& link, uint64_t channel) const;
  void OnChannelReady(ConsumerLink& link, const ipc::ChannelReady& ready);
  void OnDrained(ConsumerLink& link, ipc::Drained drained);
  void TellConsumerAll(ConsumerLink& link);
  void TellRing(const RingEntry& ring);
  void TellKernelRing(const SessionChannel& channel);
  void TellProcessGone(const ProcessEntry& process);
  bool IsHeldBack(uint64_t channel_id);
  void ToConsumer(const std::string& consumer, ConsumerLink::Make make);

  // sessions (sessions.cc)
  struct Found {
    Session* session = nullptr;
    SessionChannel* channel = nullptr;
  };
  [[nodiscard]] Found Find(uint64_t channel_id);
  // Only what the consumer may speak of.
  [[nodiscard]] Found Find(const ConsumerLink& link, uint64_t channel_id);
  void ForEachChannel(const std::function<void(Session&, SessionChannel&)>& visit);
  [[nodiscard]] std::vector<control::ChannelSpec> InForce(const std::string& container) const;
  [[nodiscard]] std::string PathOf(const std::string& name) const;
  void SaveOrNote(const Session& session);
  void PublishOrNote(const std::set<std::string>& containers);
  void OnSynced(uint64_t number);
  // Channels whose Sync waits for descriptors are read to their end before it is answered, which
  // gives some back.
  void StopBeforeSync();
  void StopInConsumer(SessionChannel& channel);
  void StartInKernel(Session& session, SessionChannel& channel);
  Status MakeInKernel(const Session& session, const SessionChannel& channel);
  void SwitchInKernel(SessionChannel& channel, bool on);
  void RestoredKernelChannels();
  void DumpStateOf(const SessionChannel& channel, uint64_t cgroup = 0);

  ipc::Loop& loop_;
  std::string dir_;
  ipc::Channel keeper_;
  Orders* orders_ = nullptr;
  Sessions sessions_;
  std::optional<OutputFolder> output_;
  Processes processes_;
  Finder finder_;
  KernelChannels kernel_;
  HugePages huge_pages_;
  Dialer dialer_;
  Containers containers_;
  std::vector<ipc::Kept> kept_areas_;  // before containers are open
  Status control_problem_;

  std::map<std::string, UniqueFd> doorbells_;
  std::map<std::string, std::unique_ptr<ConsumerLink>> consumers_;
  std::vector<ipc::Arrived> early_;  // before TakeArrivals
  uint64_t next_sync_ = 1;
  std::map<uint64_t, uint64_t> stop_after_sync_;  // channel -> number of the Sync
  std::set<uint64_t> stopped_early_;              // of these: the consumer was told to stop
  int64_t sync_asked_ns_ = 0;                     // CLOCK_MONOTONIC: the last Sync
  uint64_t life_ = 0;                             // of agents of this keeper, counted
  uint64_t recoveries_ = 0;
  uint64_t handled_ = 0;  // messages: the heartbeat's progress
  bool complete_ = false;
  bool takes_arrivals_ = false;
  uint64_t synced_ = 0;     // the last one that was answered before it did
  int64_t quit_by_ns_ = 0;  // CLOCK_MONOTONIC; 0: the keeper did not say Exit
  bool quit_sent_ = false;
};

}  // namespace weft::agent

#endif  // WEFT_NODE_AGENT_AGENT_CORE_AGENT_H_
