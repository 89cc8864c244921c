// SPDX-License-Identifier: Apache-2.0
// See dialer.h.
#include "node-agent/agent/consumers/dialer.h"

#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/time.h>

#include <mutex>
#include <thread>
#include <vector>

#include "node-agent/agent/base/limits.h"

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

struct Dialer::Finished {
  UniqueFd event;
  std::mutex mutex;
  std::vector<std::pair<uint64_t, Result<UniqueFd>>> list;
};

Dialer::~Dialer() {
  if (finished_ != nullptr) loop_->Unwatch(finished_->event.get());
}

Status Dialer::Start() {
  if (finished_ != nullptr) return {};
  auto finished = std::make_shared<Finished>();
  finished->event.reset(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!finished->event) return FailErrno("eventfd");
  WEFT_TRY(loop_->Watch(finished->event.get(), [this] { TakeFinished(); }));
  finished_ = std::move(finished);
  return {};
}

void Dialer::Dial(const std::string& host, uint16_t port, Done done) {
  if (const Status started = Start(); !started) return done(std::unexpected(started.error()));
  if (waiting_.size() >= kMaxDials) return done(Fail(ErrorCode::kLimit, "too many connections"));
  const uint64_t number = next_++;
  waiting_[number] = std::move(done);
  std::thread([finished = finished_, host, port, number] {
    Result<UniqueFd> result = DialNow(host, port);
    const std::lock_guard lock(finished->mutex);
    finished->list.emplace_back(number, std::move(result));
    const uint64_t one = 1;
    (void)!write(finished->event.get(), &one, sizeof(one));
  }).detach();
}

void Dialer::TakeFinished() {
  uint64_t count = 0;
  (void)!read(finished_->event.get(), &count, sizeof(count));
  std::vector<std::pair<uint64_t, Result<UniqueFd>>> list;
  {
    const std::lock_guard lock(finished_->mutex);
    list.swap(finished_->list);
  }
  for (auto& [number, result] : list) {
    const auto found = waiting_.find(number);
    if (found == waiting_.end()) continue;
    const Done done = std::move(found->second);
    waiting_.erase(found);
    done(std::move(result));
  }
}

}  // namespace weft::agent
