// SPDX-License-Identifier: Apache-2.0
// See doorbell.h.
#include "node-agent/keeper/doorbell.h"

#include <fcntl.h>

#include <algorithm>
#include <array>
#include <span>
#include <vector>

#include "lib/base/pidfd.h"
#include "lib/ipc/descriptors.h"
#include "lib/ipc/limits.h"
#include "node-agent/keeper/foreign.h"

#ifndef SO_PEERPIDFD
#define SO_PEERPIDFD 77  // Linux 6.5; newer than Debian 12's headers
#endif

namespace weft::keeper {
namespace {

constexpr size_t kMaxDoorbellBytes = 64;
// As many as the kernel lets one message carry, so that none is left behind unclosed.
constexpr size_t kMaxDescriptors = 253;
// Taken from the backlog before the loop turns to others.
constexpr size_t kCallersPerRound = 256;
// The kernel keeps one more than was asked for.
constexpr size_t kMaxBacklog = ipc::kListenBacklog + 1;

// One message: its first bytes, and all its descriptors. The size, or -1.
ssize_t Receive(const UniqueFd& connection, std::span<char> bytes, std::vector<UniqueFd>& fds) {
  union {
    cmsghdr align;
    std::array<char, CMSG_SPACE(sizeof(int) * kMaxDescriptors)> bytes;
  } control;
  iovec part{bytes.data(), bytes.size()};
  msghdr header{};
  header.msg_iov = &part;
  header.msg_iovlen = 1;
  header.msg_control = control.bytes.data();
  header.msg_controllen = control.bytes.size();
  const ssize_t n = recvmsg(connection.get(), &header, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
  if (n < 0) return n;
  ipc::TakeDescriptors(header, fds);
  return n;
}

// A message that is not read is closed with its connection, and what it carries with it.
void End(UniqueFd connection) {
  shutdown(connection.get(), SHUT_RDWR);  // no more comes
  // With SO_PASSCRED the kernel names the sender of each message, also of an empty one.
  const int on = 1;
  setsockopt(connection.get(), SOL_SOCKET, SO_PASSCRED, &on, sizeof(on));
  alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(ucred))> control;
  msghdr header{};
  header.msg_control = control.data();
  header.msg_controllen = control.size();
  if (recvmsg(connection.get(), &header, MSG_PEEK | MSG_DONTWAIT) == 0 &&
      header.msg_controllen == 0)
    return;
  std::vector<UniqueFd> full;
  full.push_back(std::move(connection));
  CloseForeign(std::move(full));
}

}  // namespace

Doorbell::Doorbell(ipc::Loop& loop, std::string name, UniqueFd listening, Handler handler,
                   HasRoom has_room, size_t max_silent)
    : loop_(loop),
      name_(std::move(name)),
      listening_(std::move(listening)),
      handler_(std::move(handler)),
      has_room_(std::move(has_room)),
      max_silent_(max_silent) {
  const int flags = fcntl(listening_.get(), F_GETFL);
  fcntl(listening_.get(), F_SETFL, flags | O_NONBLOCK);
  (void)loop_.Watch(listening_.get(), [this] { Answer(kCallersPerRound, true); });
}

std::vector<UniqueFd> Doorbell::StopWatching() {
  if (!paused_) loop_.Unwatch(listening_.get());
  std::vector<UniqueFd> connections;
  for (Connection& connection : silent_) {
    if (!connection.held) loop_.Unwatch(connection.fd.get());
    connections.push_back(std::move(connection.fd));
  }
  silent_.clear();
  return connections;
}

std::vector<UniqueFd> Doorbell::GiveAway() {
  std::vector<UniqueFd> connections = StopWatching();
  listening_.reset();
  return connections;
}

Doorbell::~Doorbell() {
  if (!listening_) return;  // given away
  for (UniqueFd& connection : StopWatching()) End(std::move(connection));
  shutdown(listening_.get(), SHUT_RD);  // the agent may still have it: no caller comes any more
  while (UniqueFd connection = Accept()) End(std::move(connection));
}

UniqueFd Doorbell::Accept() {
  UniqueFd fd(accept4(listening_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
  if (fd) return fd;
  // A caller that gave up is no reason to stop.
  if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM)
    Pause();
  else if (errno == EAGAIN || errno == EINVAL)  // EINVAL: no caller is left
    owed_ = 0;
  return fd;
}

void Doorbell::Pause() {
  if (paused_) return;
  paused_ = true;
  loop_.Unwatch(listening_.get());
}

bool Doorbell::IsFullOfYoung() const {
  return silent_.size() >= max_silent_ &&
         ipc::Loop::Clock::now() - silent_.front().since < kSilentTime;
}

void Doorbell::Answer(size_t limit, bool patient) {
  for (size_t i = 0; i < limit; ++i) {
    if (!has_room_() || (patient && IsFullOfYoung())) return Pause();
    UniqueFd connection = Accept();
    if (!connection) return;
    if (owed_ > 0) --owed_;
    Add(std::move(connection), handler_);
  }
}

void Doorbell::AnswerSilent() {
  for (auto it = silent_.begin(); it != silent_.end();) {
    if (!has_room_()) return Pause();
    if (it->held)
      it->held = !loop_.Watch(it->fd.get(), [this, fd = it->fd.get()] { OnReadable(fd); });
    if (Read(*it, handler_)) {
      loop_.Unwatch(it->fd.get());
      End(std::move(it->fd));
      it = silent_.erase(it);
    } else {
      ++it;
    }
  }
}

void Doorbell::AnswerAll() {
  owed_ = kMaxBacklog + silent_.size();
  AnswerSilent();
  Answer(kMaxBacklog, false);
  if (!paused_) owed_ = 0;
}

void Doorbell::GoOn() {
  if (!paused_ || !has_room_() || IsFullOfYoung()) return;
  paused_ = !loop_.Watch(listening_.get(), [this] { Answer(kCallersPerRound, true); });
  if (paused_) return;
  AnswerSilent();
  Answer(kCallersPerRound, true);
}

void Doorbell::Refuse(const Handler& refused) {
  for (auto it = silent_.begin(); it != silent_.end(); ++it) {
    if (!Read(*it, refused)) continue;
    if (!it->held) loop_.Unwatch(it->fd.get());
    End(std::move(it->fd));
    silent_.erase(it);
    return;
  }
  if (owed_ == 0) return;
  --owed_;
  if (UniqueFd connection = Accept()) Add(std::move(connection), refused);
}

// After the shutdown no message comes any more, and the caller learns that. What it sent before is
// heard.
void Doorbell::DropOldest() {
  Connection oldest = std::move(silent_.front());
  silent_.pop_front();
  if (!oldest.held) loop_.Unwatch(oldest.fd.get());
  shutdown(oldest.fd.get(), SHUT_RD);
  (void)Read(oldest, handler_);
  End(std::move(oldest.fd));
}

void Doorbell::Add(UniqueFd fd, const Handler& handler) {
  Connection connection;
  connection.fd = std::move(fd);
  socklen_t size = sizeof(connection.peer);
  if (getsockopt(connection.fd.get(), SOL_SOCKET, SO_PEERCRED, &connection.peer, &size) != 0)
    return;
  int pidfd = -1;
  size = sizeof(pidfd);
  if (getsockopt(connection.fd.get(), SOL_SOCKET, SO_PEERPIDFD, &pidfd, &size) == 0)
    connection.pidfd.reset(pidfd);
  else if (errno == ENOPROTOOPT)
    // If the pid was reused since, the ring counts as in use for longer than it is: harmless.
    connection.pidfd = OpenPidfd(connection.peer.pid);
  if (Read(connection, handler)) return End(std::move(connection.fd));
  if (silent_.size() >= max_silent_) DropOldest();
  const int number = connection.fd.get();
  if (loop_.Watch(number, [this, number] { OnReadable(number); }))
    silent_.push_back(std::move(connection));
}

void Doorbell::OnReadable(int fd) {
  auto it = std::find_if(silent_.begin(), silent_.end(),
                         [fd](const Connection& c) { return c.fd.get() == fd; });
  if (it == silent_.end()) return;
  if (!has_room_()) {
    it->held = true;
    loop_.Unwatch(fd);
    return Pause();
  }
  if (!Read(*it, handler_)) return;
  loop_.Unwatch(fd);
  End(std::move(it->fd));
  silent_.erase(it);
}

bool Doorbell::Read(Connection& connection, const Handler& handler) {
  std::array<char, kMaxDoorbellBytes> bytes;
  std::vector<UniqueFd> fds;
  const ssize_t n = Receive(connection.fd, bytes, fds);
  if (n < 0) return errno != EAGAIN && errno != EINTR;
  // Only memory has seals, and no other file is asked anything.
  if (n == 0 || fds.size() > 1 || (!fds.empty() && fcntl(fds.front().get(), F_GET_SEALS) < 0)) {
    CloseForeign(std::move(fds));
    return true;
  }
  Caller caller;
  caller.doorbell = name_;
  caller.pid = connection.peer.pid;
  caller.uid = connection.peer.uid;
  caller.gid = connection.peer.gid;
  caller.pidfd = std::move(connection.pidfd);
  caller.message.assign(bytes.data(), static_cast<size_t>(n));
  if (!fds.empty()) caller.fd = std::move(fds.front());
  handler(std::move(caller));
  return true;
}

}  // namespace weft::keeper
