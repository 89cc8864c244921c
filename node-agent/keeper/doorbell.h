// SPDX-License-Identifier: Apache-2.0
// The keeper's end of the doorbell socket (lib/abi/control.h): takes connections, one message with
// at most one descriptor from each, and reports the caller as the kernel sees it. A descriptor that
// is not memory (a memfd, tmpfs) is closed; claims of the message and of the memory are not
// examined here. Everything comes from traced programs: the number of silent connections is bounded
// (the oldest is closed first), and nothing here waits for a peer, or goes on as long as a peer
// calls.
//
// Connections are accepted only while there is room for their descriptors. Without room they stay
// in the socket's backlog, where the kernel keeps their descriptors, until GoOn finds room again,
// or Refuse takes them away. The keeper's thread owns it.
#ifndef WEFT_NODE_AGENT_KEEPER_DOORBELL_H_
#define WEFT_NODE_AGENT_KEEPER_DOORBELL_H_

#include <sys/socket.h>

#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>
#include <string>
#include <vector>

#include "lib/base/unique_fd.h"
#include "lib/ipc/loop.h"

namespace weft::keeper {

// Connections that have not sent their message yet. The library sends right after it connects.
inline constexpr size_t kMaxSilentCallers = 256;
// A caller on a busy machine is silent for a while. Where there are as many as are kept, and none
// is older than this, no more are accepted until one speaks or is; only a Sync does not wait for
// that.
inline constexpr std::chrono::milliseconds kSilentTime{1000};

struct Caller {
  std::string doorbell;  // the name of the socket it called
  int32_t pid = 0;
  uint32_t uid = 0;
  uint32_t gid = 0;
  UniqueFd pidfd;       // not valid: gone already, or a kernel before 6.5
  std::string message;  // at most 64 bytes
  UniqueFd fd;          // not valid: the message came without one
};

class Doorbell {
 public:
  using Handler = std::function<void(Caller)>;
  using HasRoom = std::function<bool()>;
  Doorbell(
      ipc::Loop& loop, std::string name, UniqueFd listening, Handler handler,
      HasRoom has_room = [] { return true; }, size_t max_silent = kMaxSilentCallers);
  ~Doorbell();
  Doorbell(const Doorbell&) = delete;
  Doorbell& operator=(const Doorbell&) = delete;

  // Goes on with a caller that another doorbell of this name gave away.
  void Adopt(UniqueFd connection) { Add(std::move(connection), handler_); }
  // Ends without a word to any caller: those in the backlog wait for the next doorbell at this
  // socket, which another process has. Returns the connections whose message was not read.
  std::vector<UniqueFd> GiveAway();

  // Takes every message that was sent before, also of callers that were silent when they were
  // accepted: as far as there is room, and what is left (`owes`) with the next calls of GoOn or
  // Refuse.
  void AnswerAll();
  // Takes what waited for room, as far as there is room now.
  void GoOn();
  // Takes one message that AnswerAll left, whether there is room or not, and gives it to `refused`
  // instead of the handler.
  void Refuse(const Handler& refused);
  // Some caller may wait for room.
  [[nodiscard]] bool paused() const { return paused_; }
  // Messages that were sent before the last AnswerAll may not be taken yet.
  [[nodiscard]] bool owes() const { return owed_ > 0; }

 private:
  struct Connection {
    UniqueFd fd;
    ucred peer{};
    UniqueFd pidfd;
    ipc::Loop::Clock::time_point since = ipc::Loop::Clock::now();
    bool held = false;  // it may have sent its message, for which there was no room
  };
  // Nothing is watched any more; returns the connections whose message was not read.
  std::vector<UniqueFd> StopWatching();
  // Accepts at most `limit` callers; `patient`: not while IsFullOfYoung.
  void Answer(size_t limit, bool patient);
  [[nodiscard]] bool IsFullOfYoung() const;
  // Reads connections that were silent.
  void AnswerSilent();
  // Not valid: there is no caller, or no descriptor is free, which pauses the doorbell.
  UniqueFd Accept();
  void Pause();
  // Ends the connection that has been silent for longest.
  void DropOldest();
  void Add(UniqueFd connection, const Handler& handler);
  // True when the connection is done with.
  bool Read(Connection& connection, const Handler& handler);
  void OnReadable(int fd);

  ipc::Loop& loop_;
  const std::string name_;
  UniqueFd listening_;
  Handler handler_;
  HasRoom has_room_;
  const size_t max_silent_;
  std::deque<Connection> silent_;
  bool paused_ = false;  // the listening socket is not watched
  size_t owed_ = 0;      // callers that may have called before the last AnswerAll, at most
};

}  // namespace weft::keeper

#endif  // WEFT_NODE_AGENT_KEEPER_DOORBELL_H_
