// SPDX-License-Identifier: Apache-2.0
// Local mode: does what the cli asks for at session.sock. There is one session, one container and
// one consumer. The session ends when the process that started the keeper ends.
//
// Invariants:
//   1. A session is on disk before the cli is told that it was created; a refusal leaves nothing.
//   2. Each StartSession is answered once, when the session is ready or refused, and each
//   StopSession once, when it is drained.
// The agent's thread owns it.
#ifndef WEFT_NODE_AGENT_AGENT_LOCAL_LOCAL_MODE_H_
#define WEFT_NODE_AGENT_AGENT_LOCAL_LOCAL_MODE_H_

#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "lib/ipc/messages.h"
#include "node-agent/agent/base/limits.h"
#include "node-agent/agent/core/agent.h"
#include "node-agent/agent/core/agent_listener.h"
#include "node-agent/agent/discovery/container_lookup.h"
#include "node-agent/hooks/hook_service.h"

namespace weft::agent {

// All processes are one user's, who could read their memory without weft: each may be recorded.
class OneContainer final : public ContainerLookup {
 public:
  bool Belongs(const std::string&, const CallerId&) override { return true; }
  std::optional<std::string> ContainerOf(int32_t) override { return ""; }
};

class LocalMode final : public AgentListener {
 public:
  // `agent` outlives this. `modules`: folders of weft.ko (local_module.h).
  LocalMode(Agent& agent, std::vector<std::string> modules)
      : agent_(agent), modules_(std::move(modules)) {}

  bool TakeKept(ipc::Kept& kept) override;
  Status Restore() override;
  void Resumed() override;
  void SessionChanged(Session& session) override;
  void ChannelFailed(Session& session, const std::string& why) override;
  void ConsumerFailed(const std::string& consumer, const std::string& why) override;
  void OwnerGone() override;
  void Tick(int64_t now_ns) override;
  void Note(std::string text) override;

 private:
  struct Client {
    ipc::Connection connection;
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
  // Makes and saves the session that is requested; std::nullopt: it exists. A refusal leaves
  // nothing.
  std::optional<Refusal> Make(const ipc::CreateSession& command);
  std::optional<Refusal> MakeInKernel(Session& session, const ipc::CreateSession& command);
  void Unmake(const Session& session);
  Status ScopeToProgram(Session& session, const ipc::CreateSession& command);
  // Loads libweft.so into a process that runs without it.
  Status LoadInto(int32_t pid);
  // Makes the hooks those of the channels that record now.
  void UpdateHooks();
  void StartSession();
  void StopSession();
  void RefuseStarts(const char* kind, const std::string& why);
  void GiveUpRefused(int64_t now_ns);
  void AnswerWaiting();
  [[nodiscard]] Session* session() const { return agent_.parts().sessions.Find(kLocalSession); }
  [[nodiscard]] ipc::Phase phase() const;
  [[nodiscard]] ipc::SessionState State();

  Agent& agent_;
  hooks::HookService hooks_;
  const std::vector<std::string> modules_;
  UniqueFd socket_;
  std::map<uint64_t, Client> clients_;
  uint64_t next_client_ = 1;
  std::vector<std::string> notices_;  // for people, oldest first, also from before the session
  bool owner_gone_ = false;
  int64_t owner_gone_ns_ = 0;
  bool detaches_ = false;   // all is recorded; programs get back what was changed in them
  int64_t refused_ns_ = 0;  // since when it waits for a relay that refuses what is left
};

}  // namespace weft::agent

#endif  // WEFT_NODE_AGENT_AGENT_LOCAL_LOCAL_MODE_H_
