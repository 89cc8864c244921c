// SPDX-License-Identifier: Apache-2.0
// Sockets, queues and descriptors of connections; the messages' text is codec.cc's.
#include "lib/ipc/connection.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <array>
#include <cstring>

#include "lib/ipc/descriptors.h"
#include "lib/ipc/limits.h"

namespace weft::ipc {
namespace {

using Clock = std::chrono::steady_clock;

union ControlBuffer {
  cmsghdr align;
  std::array<char, CMSG_SPACE(sizeof(int) * kMaxMessageFds)> bytes;
};

}  // namespace

void TakeDescriptors(msghdr& header, std::vector<UniqueFd>& out) {
  for (cmsghdr* c = CMSG_FIRSTHDR(&header); c != nullptr; c = CMSG_NXTHDR(&header, c)) {
    if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS) continue;
    const size_t count = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    for (size_t i = 0; i < count; ++i) {
      int fd = -1;
      std::memcpy(&fd, CMSG_DATA(c) + i * sizeof(int), sizeof(int));
      out.emplace_back(fd);
    }
  }
}

Connection::Connection(UniqueFd socket) : socket_(std::move(socket)) {
  const int flags = fcntl(socket_.get(), F_GETFL);
  if (flags >= 0) fcntl(socket_.get(), F_SETFL, flags | O_NONBLOCK);
}

Result<std::pair<UniqueFd, UniqueFd>> Connection::MakePair() {
  int fds[2];
  if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fds) != 0)
    return FailErrno("socketpair");
  return std::pair(UniqueFd(fds[0]), UniqueFd(fds[1]));
}

Result<Connection> Connection::ConnectTo(const std::string& path) {
  UniqueFd folder;
  std::string name = path;
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (name.size() >= sizeof(address.sun_path)) {
    const size_t slash = path.rfind('/');
    folder.reset(open(path.substr(0, slash).c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
    if (!folder) return FailErrno(path);
    name = "/proc/self/fd/" + std::to_string(folder.get()) + path.substr(slash);
    if (name.size() >= sizeof(address.sun_path))
      return Fail(ErrorCode::kInvalid, path + ": name too long for a socket");
  }
  std::memcpy(address.sun_path, name.c_str(), name.size() + 1);
  UniqueFd socket(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
  if (!socket) return FailErrno("socket");
  // A full backlog from which no process accepts ends the wait with EAGAIN.
  const timeval most{.tv_sec = kConnectTime.count(), .tv_usec = 0};
  setsockopt(socket.get(), SOL_SOCKET, SO_SNDTIMEO, &most, sizeof(most));
  if (connect(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)) != 0)
    return FailErrno(path);
  return Connection(std::move(socket));
}

void Connection::Close() {
  socket_.reset();
  queue_.clear();
}

Status Connection::SendNow(const Wire& wire) {
  iovec part{const_cast<char*>(wire.text.data()), wire.text.size()};
  ControlBuffer control{};
  msghdr header{};
  header.msg_iov = &part;
  header.msg_iovlen = 1;
  if (!wire.fds.empty()) {
    header.msg_control = control.bytes.data();
    header.msg_controllen = CMSG_SPACE(sizeof(int) * wire.fds.size());
    cmsghdr* c = CMSG_FIRSTHDR(&header);
    c->cmsg_level = SOL_SOCKET;
    c->cmsg_type = SCM_RIGHTS;
    c->cmsg_len = CMSG_LEN(sizeof(int) * wire.fds.size());
    for (size_t i = 0; i < wire.fds.size(); ++i) {
      const int fd = wire.fds[i].get();
      std::memcpy(CMSG_DATA(c) + i * sizeof(int), &fd, sizeof(int));
    }
  }
  ssize_t n;
  do {
    n = sendmsg(socket_.get(), &header, MSG_NOSIGNAL | MSG_DONTWAIT);
  } while (n < 0 && errno == EINTR);
  if (n >= 0) return {};
  if (errno == EPIPE || errno == ECONNRESET || errno == ENOTCONN)
    return Fail(ErrorCode::kClosed, "the peer went away");
  return FailErrno("sendmsg");
}

Status Connection::Send(Message message) {
  if (!socket_) return Fail(ErrorCode::kClosed, "the connection is closed");
  if (queue_.size() >= kMaxQueuedMessages)
    return Fail(ErrorCode::kLimit, "the peer is slow: the queue of messages is full");
  WEFT_ASSIGN(Wire wire, Encode(std::move(message)));
  queue_.push_back(std::move(wire));
  return Flush();
}

Status Connection::Flush() {
  while (!queue_.empty()) {
    const Status sent = SendNow(queue_.front());
    if (!sent) {
      // ETOOMANYREFS: too many descriptors of this user are on their way; they arrive some time.
      const int e = sent.error().sys_errno;
      if (e == EAGAIN || e == ENOBUFS || e == ENOMEM || e == ETOOMANYREFS) return {};
      return sent;
    }
    queue_.pop_front();
  }
  return {};
}

Result<std::optional<Message>> Connection::Receive() {
  if (!socket_) return Fail(ErrorCode::kClosed, "the connection is closed");
  // One byte more than allowed distinguishes a message of the largest size from one that is too
  // large.
  static thread_local std::vector<char> buffer(kMaxMessageBytes + 1);
  iovec part{buffer.data(), buffer.size()};
  ControlBuffer control{};
  msghdr header{};
  header.msg_iov = &part;
  header.msg_iovlen = 1;
  header.msg_control = control.bytes.data();
  header.msg_controllen = control.bytes.size();
  ssize_t n;
  do {
    n = recvmsg(socket_.get(), &header, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
  } while (n < 0 && errno == EINTR);
  if (n < 0) {
    if (errno == EAGAIN) return std::optional<Message>();
    if (errno == ECONNRESET) return Fail(ErrorCode::kClosed, "the peer went away");
    return FailErrno("recvmsg");
  }
  Wire wire;
  TakeDescriptors(header, wire.fds);
  if (n == 0) return Fail(ErrorCode::kClosed, "the peer closed the connection");
  if ((header.msg_flags & (MSG_TRUNC | MSG_CTRUNC)) != 0)
    return Fail(ErrorCode::kCorrupt, "message or its descriptors were cut off");
  wire.text.assign(buffer.data(), static_cast<size_t>(n));
  WEFT_ASSIGN(Message message, Decode(std::move(wire)));
  return std::optional<Message>(std::move(message));
}

Result<Message> Connection::Wait(std::chrono::milliseconds timeout) {
  const auto deadline = Clock::now() + timeout;
  while (true) {
    WEFT_ASSIGN(std::optional<Message> message, Receive());
    if (message) return std::move(*message);
    const auto left =
        std::chrono::duration_cast<std::chrono::milliseconds>(deadline - Clock::now()).count();
    if (left <= 0) return Fail(ErrorCode::kTimeout, "no answer");
    pollfd p{fd(), static_cast<short>(POLLIN | (wants_write() ? POLLOUT : 0)), 0};
    if (poll(&p, 1, static_cast<int>(left)) < 0 && errno != EINTR) return FailErrno("poll");
    if ((p.revents & POLLOUT) != 0) WEFT_TRY(Flush());
  }
}

}  // namespace weft::ipc
