// SPDX-License-Identifier: Apache-2.0
// The agent of local mode: one session, one container, one consumer. It decides what is on, hands ring
// sets from the doorbell to the consumer, opens files for it, answers the cli.
//
// Start:  the keeper repeats what it kept; control area and session are opened, or made; sockets; then
// Hello. START is Ready when the rules are published and the consumer has acknowledged every channel.
// STOP: rules without the channels; Sync and a look at all processes, so that every ring set that was
// made before is known; StopChannel; Drained. A crash at any point is mended by the next agent, which does again what is not
// finished: everything here may happen twice.
// One thread: all of it runs in the loop's handlers.
#ifndef WEFT_NODE_AGENT_AGENT_AGENT_H_
#define WEFT_NODE_AGENT_AGENT_AGENT_H_

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "lib/control/area.h"
#include "lib/ipc/loop.h"
#include "lib/ipc/messages.h"
#include "node-agent/agent/dialer.h"
#include "node-agent/agent/finder.h"
#include "node-agent/agent/output_folder.h"
#include "node-agent/agent/processes.h"
#include "node-agent/agent/session.h"

namespace weft::agent {

class Agent {
 public:
  // `dir`: the session's folder; `keeper`: the channel to it.
  Agent(ipc::Loop& loop, std::string dir, ipc::Channel keeper);
  Status Start();

 private:
  struct Client {
    ipc::Channel channel;
    bool waits_for_start = false;
    bool waits_for_stop = false;
  };

  // keeper (agent.cc)
  void OnKeeper(Result<ipc::Message> message);
  void OnKept(ipc::Kept kept);
  void OnKeptComplete();
  Status MakeReady();
  Status OpenControl();
  Status OpenSockets();
  Result<UniqueFd> Listen(const std::string& name, unsigned mode);
  void Resume();
  void OnConsumerGone(const ipc::ConsumerGone& gone);
  void OnOwnerGone();
  void Quit();
  void Tick();
  void ToKeeper(ipc::Message message);

  // ring sets (rings.cc)
  void OnArrived(ipc::Arrived arrived);
  void TakeRing(SessionChannel& channel, ipc::Arrived& arrived, uint64_t instance);
  void AccountLate(SessionChannel& channel, const ipc::Arrived& arrived, uint64_t instance,
                   const char* reason);

  // memory that was not announced (found.cc)
  void Look();
  Finder::Verdict OnFound(FoundMemory found);
  Status AdoptControl(UniqueFd fd, uint64_t inode);
  void DropControl(uint64_t inode);
  Status Publish();
  bool RestoreFound(ipc::Kept& kept);
  void RestoredFound();
  void AddRoot(int32_t pid, UniqueFd pidfd);
  Status Attach(const std::vector<int32_t>& pids);
  void Detach(const std::vector<int32_t>& pids);
  void ForgetRings(SessionChannel& channel);

  // consumer (consumer_link.cc)
  void OnConnect(ipc::Connect connect);
  void OnConsumer(Result<ipc::Message> message);
  void OnFileRequest(const ipc::FileRequest& request);
  void OnConnectionRequest(const ipc::ConnectionRequest& request);
  void OnChannelReady(const ipc::ChannelReady& ready);
  void OnDrained(ipc::Drained drained);
  void TellConsumerAll();
  void TellRing(const RingEntry& ring);
  bool IsHeldBack(uint64_t channel_id);
  void ToConsumer(std::function<ipc::Message()> make);
  void PumpConsumer();

  // cli (client_link.cc)
  void OnClientConnects();
  void OnClient(uint64_t number, Result<ipc::Message> message);
  void Create(Client& client, const ipc::CreateSession& command);
  void StartSession();
  void StopSession();
  void StopChannels(const std::function<bool(const SessionChannel&)>& which);
  void OnSynced(uint64_t number);
  void FinishWithoutConsumer(const std::string& stage, const std::string& reason);
  void AnswerWaiting();
  ipc::SessionState State() const;
  void Note(std::string text);
  Status Save();

  ipc::Loop& loop_;
  std::string dir_;
  ipc::Channel keeper_;
  std::unique_ptr<control::ControlArea> control_;  // after MakeReady
  Session session_;
  std::optional<OutputFolder> output_;
  Processes processes_;
  Finder finder_;
  Dialer dialer_;
  std::map<uint64_t, control::ControlArea> areas_;  // adopted, by inode
  std::vector<ipc::Kept> kept_areas_;               // before there is control_
  Status control_problem_;                          // why the last one was not adopted

  UniqueFd journal_;
  UniqueFd doorbell_;
  UniqueFd clients_socket_;
  std::vector<ipc::Arrived> early_;  // before KeptComplete

  ipc::Channel consumer_;
  bool consumer_greeted_ = false;
  uint64_t consumer_connection_ = 0;  // counts them
  bool consumer_given_up_ = false;
  std::string consumer_reason_;
  std::deque<std::function<ipc::Message()>> to_consumer_;

  std::map<uint64_t, Client> clients_;
  uint64_t next_client_ = 1;
  uint64_t next_sync_ = 1;
  std::map<uint64_t, uint64_t> stop_after_sync_;  // channel -> number of the Sync
  uint64_t recoveries_ = 0;
  uint64_t handled_ = 0;  // messages: the heartbeat's progress
  bool complete_ = false;
  bool owner_gone_ = false;
  int64_t owner_gone_ns_ = 0;
  bool quit_sent_ = false;
};

}  // namespace weft::agent

#endif  // WEFT_NODE_AGENT_AGENT_AGENT_H_
