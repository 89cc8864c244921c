// SPDX-License-Identifier: Apache-2.0
// Local mode: the orders of the cli at session.sock. One session, one container, one consumer; the
// end of the keeper's starter is the session's end.
#ifndef WEFT_NODE_AGENT_AGENT_LOCAL_LOCAL_MODE_H_
#define WEFT_NODE_AGENT_AGENT_LOCAL_LOCAL_MODE_H_

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "lib/ipc/messages.h"
#include "node-agent/agent/base/limits.h"
#include "node-agent/agent/core/agent.h"
#include "node-agent/agent/core/orders.h"

namespace weft::agent {

class LocalMode final : public Orders {
 public:
  // `agent` outlives this, but for its destructor. `modules`: folders of weft.ko (local_module.h).
  LocalMode(Agent& agent, std::vector<std::string> modules)
      : agent_(agent), modules_(std::move(modules)) {}

  bool TakeKept(ipc::Kept& kept) override;
  Status Open() override;
  void Resumed() override;
  bool Belongs(const std::string& container, const CallerId& caller) override;
  std::optional<std::string> ContainerOf(int32_t pid) override;
  void Changed(Session& session) override;
  void ChannelFailed(Session& session, const std::string& why) override;
  void ConsumerFailed(const std::string& consumer, const std::string& why) override;
  void OwnerGone() override;
  void Tick(int64_t now_ns) override;
  void Note(std::string text) override;

 private:
  struct Client {
    ipc::Channel channel;
    bool waits_for_start = false;
    bool waits_for_stop = false;
  };

  void OnClientConnects();
  void OnClient(uint64_t number, Result<ipc::Message> message);
  void Create(Client& client, const ipc::CreateSession& command);
  struct Refusal {
    const char* kind;  // ipc::Refused
    std::string why;
  };
  // The session as it is asked for, made and saved; nothing: it is there. A refusal leaves nothing.
  std::optional<Refusal> Make(const ipc::CreateSession& command);
  std::optional<Refusal> MakeInKernel(Session& session, const ipc::CreateSession& command);
  void Unmake(const Session& session);
  Status ScopeToProgram(Session& session, const ipc::CreateSession& command);
  Status Attach(const std::vector<int32_t>& pids);
  void StartSession();
  void StopSession();
  void RefuseStarts(const char* kind, const std::string& why);
  void AnswerWaiting();
  [[nodiscard]] Session* session() const { return agent_.FindSession(kLocalSession); }
  [[nodiscard]] ipc::Phase phase() const;
  [[nodiscard]] ipc::SessionState State() const;

  Agent& agent_;
  const std::vector<std::string> modules_;
  UniqueFd socket_;
  std::map<uint64_t, Client> clients_;
  uint64_t next_client_ = 1;
  std::vector<std::string> notices_;  // for people, oldest first; those of before a session, too
  bool owner_gone_ = false;
  int64_t owner_gone_ns_ = 0;
};

}  // namespace weft::agent

#endif  // WEFT_NODE_AGENT_AGENT_LOCAL_LOCAL_MODE_H_
