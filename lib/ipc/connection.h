// SPDX-License-Identifier: Apache-2.0
// A connection: a SOCK_SEQPACKET Unix socket that carries the messages of messages.h.
// Never blocks, unless Wait is called. One thread owns a connection.
//
// Use: poll on fd() for POLLIN, and for POLLOUT while wants_write(). On POLLIN call Receive until
// it returns no message; on POLLOUT call Flush. Send writes to the socket, or to a bounded queue if
// the socket is full. The peer may be hostile, as a consumer can be: whatever it sends, Receive
// returns a message that has the right types and sizes, or an error, after which the caller should
// close the connection. SIGPIPE is never raised. Descriptors that arrive are close-on-exec; those
// that a message does not want are closed.
#ifndef WEFT_LIB_IPC_CONNECTION_H_
#define WEFT_LIB_IPC_CONNECTION_H_

#include <chrono>
#include <cstddef>
#include <deque>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "lib/base/result.h"
#include "lib/base/unique_fd.h"
#include "lib/ipc/messages.h"

namespace weft::ipc {

// A message as it travels.
struct Wire {
  std::string text;
  std::vector<UniqueFd> fds;
};

// kLimit: the message is larger than kMaxMessageBytes.
Result<Wire> Encode(Message message);
// kCorrupt: it is not a message, has a wrong type, or lacks a member or descriptor.
Result<Message> Decode(Wire wire);

// Returns the name of a message's type, such as "Ring"; for logs.
std::string_view MessageName(const Message& message);

class Connection {
 public:
  Connection() = default;  // closed
  explicit Connection(UniqueFd socket);

  // Two connected ends, close-on-exec.
  static Result<std::pair<UniqueFd, UniqueFd>> MakePair();
  // Connects to a listening socket of that path (through /proc/self/fd if it is too long).
  static Result<Connection> ConnectTo(const std::string& path);

  [[nodiscard]] int fd() const { return socket_.get(); }
  [[nodiscard]] bool valid() const { return socket_.valid(); }
  [[nodiscard]] bool wants_write() const { return !queue_.empty(); }
  void Close();

  // kLimit: the queue is full, nothing was sent (for Stats and Heartbeat: say the newer one later).
  // kClosed: the peer went away.
  Status Send(Message message);
  Status Flush();

  // std::nullopt: no message is there now. kClosed: the peer closed its end and everything was
  // received.
  Result<std::optional<Message>> Receive();

  // Blocks until a message is there, sending what is queued meanwhile. It may fail with kTimeout.
  Result<Message> Wait(std::chrono::milliseconds timeout);

 private:
  Status SendNow(const Wire& wire);

  UniqueFd socket_;
  std::deque<Wire> queue_;
};

}  // namespace weft::ipc

#endif  // WEFT_LIB_IPC_CONNECTION_H_
