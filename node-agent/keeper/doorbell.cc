// SPDX-License-Identifier: Apache-2.0
// See doorbell.h.
#include "node-agent/keeper/doorbell.h"

#include <fcntl.h>

#include <algorithm>
#include <array>
#include <cstring>

#include "lib/base/pidfd.h"

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

}  // namespace

Doorbell::Doorbell(ipc::Loop& loop, std::string name, UniqueFd listening, Handler handler)
    : loop_(loop),
      name_(std::move(name)),
      listening_(std::move(listening)),
      handler_(std::move(handler)) {
  const int flags = fcntl(listening_.get(), F_GETFL);
  fcntl(listening_.get(), F_SETFL, flags | O_NONBLOCK);
  (void)loop_.Watch(listening_.get(), [this] { Answer(kCallersPerRound); });
}

Doorbell::~Doorbell() {
  loop_.Unwatch(listening_.get());
  for (const Connection& connection : silent_) loop_.Unwatch(connection.fd.get());
}

void Doorbell::Answer(size_t limit) {
  for (size_t i = 0; i < limit; ++i) {
    UniqueFd connection(accept4(listening_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (!connection) return;
    Add(std::move(connection));
  }
}

void Doorbell::AnswerAll() {
  for (auto it = silent_.begin(); it != silent_.end();) {
    if (Read(*it)) {
      loop_.Unwatch(it->fd.get());
      it = silent_.erase(it);
    } else {
      ++it;
    }
  }
  Answer(SIZE_MAX);
}

void Doorbell::Add(UniqueFd fd) {
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
  if (Read(connection)) return;
  if (silent_.size() >= kMaxSilentCallers) {
    loop_.Unwatch(silent_.front().fd.get());
    silent_.pop_front();
  }
  const int number = connection.fd.get();
  if (loop_.Watch(number, [this, number] { OnReadable(number); }))
    silent_.push_back(std::move(connection));
}

void Doorbell::OnReadable(int fd) {
  auto it = std::find_if(silent_.begin(), silent_.end(),
                         [fd](const Connection& c) { return c.fd.get() == fd; });
  if (it == silent_.end() || !Read(*it)) return;
  loop_.Unwatch(fd);
  silent_.erase(it);
}

bool Doorbell::Read(Connection& connection) {
  std::array<char, kMaxDoorbellBytes> bytes;
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
  const ssize_t n = recvmsg(connection.fd.get(), &header, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
  if (n < 0) return errno != EAGAIN && errno != EINTR;

  Caller caller;
  size_t descriptors = 0;
  for (cmsghdr* c = CMSG_FIRSTHDR(&header); c != nullptr; c = CMSG_NXTHDR(&header, c)) {
    if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS) continue;
    const size_t count = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    for (size_t i = 0; i < count; ++i, ++descriptors) {
      int fd = -1;
      std::memcpy(&fd, CMSG_DATA(c) + i * sizeof(int), sizeof(int));
      caller.fd.reset(fd);
    }
  }
  if (n == 0 || descriptors != 1) return true;
  caller.doorbell = name_;
  caller.pid = connection.peer.pid;
  caller.uid = connection.peer.uid;
  caller.gid = connection.peer.gid;
  caller.pidfd = std::move(connection.pidfd);
  caller.message.assign(bytes.data(), static_cast<size_t>(n));
  handler_(std::move(caller));
  return true;
}

}  // namespace weft::keeper
