// SPDX-License-Identifier: Apache-2.0
// See dialer.h.
#include "node-agent/agent/consumers/dialer.h"

#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <sys/time.h>

#include <utility>

namespace weft::agent {
namespace {

// A relay's machine that died without a word is noticed by what it does not acknowledge.
void PrepareSocket(int fd) {
  const int on = 1;
  const unsigned silence = static_cast<unsigned>(std::chrono::milliseconds(kRelaySilence).count());
  (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
  (void)setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof(on));
  (void)setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &kRelayKeepIdle, sizeof(kRelayKeepIdle));
  (void)setsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &kRelayKeepIdle, sizeof(kRelayKeepIdle));
  (void)setsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &silence, sizeof(silence));
}

Result<UniqueFd> ConnectTo(const addrinfo& address) {
  UniqueFd fd(socket(address.ai_family, address.ai_socktype | SOCK_CLOEXEC, address.ai_protocol));
  if (!fd) return FailErrno("socket");
  const timeval limit{kDialTime.count(), 0};
  (void)setsockopt(fd.get(), SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof(limit));
  if (connect(fd.get(), address.ai_addr, address.ai_addrlen) != 0) {
    if (errno == EINPROGRESS) errno = ETIMEDOUT;
    return FailErrno("cannot connect");
  }
  PrepareSocket(fd.get());
  return fd;
}

Result<UniqueFd> DialNow(const std::string& host, uint16_t port) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_NUMERICSERV;
  addrinfo* list = nullptr;
  const int rc = getaddrinfo(host.c_str(), std::to_string(port).c_str(), &hints, &list);
  if (rc != 0) return Fail(ErrorCode::kNotFound, host + ": " + gai_strerror(rc));
  Result<UniqueFd> connected = Fail(ErrorCode::kNotFound, host + ": no address");
  for (const addrinfo* at = list; at != nullptr && !connected; at = at->ai_next) {
    connected = ConnectTo(*at);
  }
  freeaddrinfo(list);
  return connected;
}

}  // namespace

void Dialer::Dial(const std::string& host, uint16_t port, Done done) {
  calls_.Start([host, port] { return DialNow(host, port); }, std::move(done));
}

}  // namespace weft::agent
