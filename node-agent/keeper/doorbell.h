// SPDX-License-Identifier: Apache-2.0
// The keeper's end of the doorbell socket (lib/abi/control.h): takes connections, one message with one
// descriptor of each, and says whom the kernel saw. A descriptor of anything but memory (a memfd, tmpfs) goes no
// further; what the message or the memory claims is not looked at here. Everything comes from traced programs:
// connections that stay silent are bounded in number (the oldest goes first), and nothing here waits for
// anybody, nor goes on for as long as somebody calls.
// The keeper's thread owns it.
#ifndef WEFT_NODE_AGENT_KEEPER_DOORBELL_H_
#define WEFT_NODE_AGENT_KEEPER_DOORBELL_H_

#include <sys/socket.h>

#include <cstdint>
#include <deque>
#include <functional>
#include <string>

#include "lib/base/unique_fd.h"
#include "lib/ipc/loop.h"

namespace weft::keeper {

// Connections that have not sent their message yet. The library sends right after it connects.
inline constexpr size_t kMaxSilentCallers = 256;

struct Caller {
  std::string doorbell;  // the name of the socket it called
  int32_t pid = 0;
  uint32_t uid = 0;
  uint32_t gid = 0;
  UniqueFd pidfd;       // not valid: gone already, or a kernel before 6.5
  std::string message;  // at most 64 bytes
  UniqueFd fd;
};

class Doorbell {
 public:
  using Handler = std::function<void(Caller)>;
  Doorbell(ipc::Loop& loop, std::string name, UniqueFd listening, Handler handler);
  ~Doorbell();
  Doorbell(const Doorbell&) = delete;
  Doorbell& operator=(const Doorbell&) = delete;

  // Takes every message that was sent before, also of callers that were silent when they were accepted.
  void AnswerAll();

 private:
  struct Connection {
    UniqueFd fd;
    ucred peer{};
    UniqueFd pidfd;
  };
  // Accepts at most `limit` callers.
  void Answer(size_t limit);
  UniqueFd Accept();
  void DropOldest();
  void Add(UniqueFd connection);
  // True when the connection is done with.
  bool Read(Connection& connection);
  void OnReadable(int fd);

  ipc::Loop& loop_;
  const std::string name_;
  UniqueFd listening_;
  Handler handler_;
  std::deque<Connection> silent_;
};

}  // namespace weft::keeper

#endif  // WEFT_NODE_AGENT_KEEPER_DOORBELL_H_
