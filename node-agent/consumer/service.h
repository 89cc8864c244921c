// SPDX-License-Identifier: Apache-2.0
// A consumer as a process: messages in, rounds of work, messages out. lib/ipc/messages.h describes
// its life. Used by one thread.
#ifndef WEFT_NODE_AGENT_CONSUMER_SERVICE_H_
#define WEFT_NODE_AGENT_CONSUMER_SERVICE_H_

#include <deque>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <variant>
#include <vector>

#include "lib/ipc/descriptor_budget.h"
#include "node-agent/consumer/agent_link.h"
#include "node-agent/consumer/consumer.h"
#include "node-agent/consumer/file_client.h"
#include "node-agent/consumer/folder_sink.h"
#include "node-agent/consumer/relay_sink.h"

namespace weft::consumer {

class Service {
 public:
  // `cpus`: the most that this machine can have. `cpus` and `budget` are found out before the
  // sandbox, in which that is not possible.
  Service(UniqueFd keeper, uint32_t cpus, const ipc::DescriptorBudget& budget,
          BackgroundWriter& writer)
      : link_(std::move(keeper)),
        files_(link_),
        folders_(files_, writer),
        relays_([this](const ipc::ConnectionRequest& request) { return link_.Send(request); },
                [this](const std::string& text) { Notice(text); },
                [this](ipc::RelayRefusal refusal) { Tell(std::move(refusal)); }),
        cpus_(cpus),
        budget_(budget) {}

  // Until the keeper says Exit or goes away. The process's exit status.
  int Run();

 private:
  void HandleMessages();
  void MeetAgent();
  void Handle(ipc::Message message);
  void Configure(ipc::Configure message);
  void AddChannel(const ipc::ChannelDefinition& message);
  void AddRing(ipc::Ring message);
  void TellReady();
  void TellEnded();
  void TellWentRound();
  void TellDrained();
  void TellStats();
  // Messages that must arrive: they are sent again until the agent's socket takes them.
  using MustArrive =
      std::variant<ipc::ChannelReady, ipc::RingDone, ipc::Drained, ipc::RelayRefusal>;
  void Tell(MustArrive message);
  void SendQueued();
  // Relays acknowledge what is on its way, or do not in time.
  void AwaitRelays(uint64_t deadline_ns);
  Status FlushAll();
  void Notice(const std::string& text);

  AgentLink link_;
  FileClient files_;
  FolderSinks folders_;
  RelayLinks relays_;
  SinkRouter sinks_{folders_, relays_};
  uint32_t cpus_;
  ipc::DescriptorBudget budget_;
  std::unique_ptr<Consumer> consumer_;
  std::vector<uint64_t> to_stop_;
  std::set<uint64_t> unready_;   // channels that were defined: the agent waits for a word of them
  std::set<uint64_t> waiting_;   // of these, those whose relay does not answer, as the agent knows
  uint64_t connection_ = 0;      // to which what follows was told
  std::set<uint64_t> defined_;   // channels that this agent knows
  std::set<uint64_t> to_drain_;  // channels of which Drained is to be told once
  std::map<uint64_t, ipc::ChannelCounts> stats_told_;
  std::deque<MustArrive> unsent_;
  uint64_t stats_ns_ = 0;
  uint64_t messages_ = 0;
};

}  // namespace weft::consumer

#endif  // WEFT_NODE_AGENT_CONSUMER_SERVICE_H_
