// SPDX-License-Identifier: Apache-2.0
// The other keepers of this node, as the one sees them that holds the lease: their connections to
// DIR/keeper.sock, and which of them gets what this one keeps. Only root can connect.
// The keeper's thread owns it.
#ifndef WEFT_NODE_AGENT_KEEPER_HEIRS_H_
#define WEFT_NODE_AGENT_KEEPER_HEIRS_H_

#include <functional>
#include <list>
#include <string>

#include "lib/base/result.h"
#include "lib/base/unique_fd.h"
#include "lib/ipc/connection.h"
#include "lib/ipc/loop.h"

namespace weft::keeper {

class Heirs {
 public:
  struct Handlers {
    std::function<void()> asked;      // an heir is to get all now, see chosen()
    std::function<void(bool)> ended;  // chosen() has taken all over (true), or is gone (false)
  };
  // `loop` outlives this.
  Heirs(ipc::Loop& loop, Handlers handlers) : loop_(loop), handlers_(std::move(handlers)) {}
  ~Heirs();
  Heirs(const Heirs&) = delete;
  Heirs& operator=(const Heirs&) = delete;

  // Other keepers can connect to DIR/keeper.sock from now on.
  Status Listen(const std::string& dir);
  // A connection that is there already: the keeper that handed over to this one.
  void Add(ipc::Connection connection);

  // Chooses the heir that came last, unless one is chosen. False: there is none.
  bool Choose();
  // Null: none is chosen.
  [[nodiscard]] ipc::Connection* chosen() { return chosen_ ? &chosen_->connection : nullptr; }
  // Whether the chosen one can read what this keeper's version keeps.
  [[nodiscard]] bool understands() const { return chosen_ && chosen_->understands; }
  // The chosen one's connection, which is not watched any more; closed: none is chosen.
  ipc::Connection TakeChosen();

 private:
  struct Heir {
    ipc::Connection connection;
    bool understands = false;
  };
  void Accept();
  void Watch(Heir& heir);
  void OnMessage(Heir& heir, Result<ipc::Message> message);

  ipc::Loop& loop_;
  const Handlers handlers_;
  UniqueFd listening_;
  std::list<Heir> heirs_;  // an Heir stays where it is: the loop has its connection
  Heir* chosen_ = nullptr;
};

}  // namespace weft::keeper

#endif  // WEFT_NODE_AGENT_KEEPER_HEIRS_H_
