// SPDX-License-Identifier: Apache-2.0
// All sessions of this agent, each with a file DIR/NAME.json, so that the next agent finds them.
//
// Invariants:
//   1. A session is in the store only after its file was written (Add) or read (Load).
//   2. A channel's id is in at most one session.
//   3. Pointers to a session stay valid until Remove; pointers to a channel, until its session adds
//      or retires channels.
// Code that changes a session saves it: Save writes the whole file in one step. The agent's thread
// owns the store.
#ifndef WEFT_NODE_AGENT_AGENT_SESSION_SESSION_STORE_H_
#define WEFT_NODE_AGENT_AGENT_SESSION_SESSION_STORE_H_

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "node-agent/agent/session/session.h"

namespace weft::agent {

class SessionStore {
 public:
  using Sessions = std::map<std::string, std::unique_ptr<Session>>;
  using Note = std::function<void(std::string)>;  // a message for people

  // A channel and its session; both nullptr if there is none.
  struct Place {
    Session* session = nullptr;
    SessionChannel* channel = nullptr;
  };

  // `dir` exists. `note` gets a message about each file that cannot be written.
  SessionStore(std::string dir, Note note) : dir_(std::move(dir)), note_(std::move(note)) {}

  [[nodiscard]] const std::string& dir() const { return dir_; }
  [[nodiscard]] const Sessions& all() const { return sessions_; }
  // Null: there is no session of this name.
  [[nodiscard]] Session* Find(const std::string& name);
  // kNotFound: there is no such file.
  Status Load(const std::string& name);
  Status Add(const std::string& name, Session session);
  // Removes the session and its file.
  void Remove(const std::string& name);
  // Writes the session's file; nothing where the session is not in the store.
  Status Save(const Session& session);
  void SaveOrNote(const Session& session);

  [[nodiscard]] Place FindChannel(uint64_t channel_id);
  // Finds only a channel that this consumer reads, since a consumer may not report on others.
  [[nodiscard]] Place FindChannelOf(const std::string& consumer, uint64_t channel_id);
  void ForEachChannel(const std::function<void(Session&, SessionChannel&)>& visit);
  // Returns the channels of all sessions that are in force in a container.
  [[nodiscard]] std::vector<control::ChannelSpec> InForce(const std::string& container) const;
  // Returns the session of a channel that this consumer reads, or read before it was retired. Null:
  // there is none.
  [[nodiscard]] Session* SessionOf(const std::string& consumer, uint64_t channel_id) const;
  // Gives each channel that is not drained, and whose consumer has no journal, a new CTF trace: its
  // consumer begins anew and knows nothing of the files that were written before.
  void RenewWithoutJournal(const std::function<bool(const std::string& consumer)>& has_journal);

 private:
  [[nodiscard]] std::string PathOf(const std::string& name) const;

  const std::string dir_;
  const Note note_;
  Sessions sessions_;
};

}  // namespace weft::agent

#endif  // WEFT_NODE_AGENT_AGENT_SESSION_SESSION_STORE_H_
