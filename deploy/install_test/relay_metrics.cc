// SPDX-License-Identifier: Apache-2.0
// See relay_metrics.h.
#include "deploy/install_test/relay_metrics.h"

#include <netdb.h>
#include <sys/socket.h>
#include <sys/time.h>

#include <array>
#include <cstdlib>
#include <memory>

#include "lib/base/unique_fd.h"

namespace weft::install_test {
namespace {

constexpr timeval kPatience = {.tv_sec = 5, .tv_usec = 0};  // for each step of a connection
constexpr size_t kMaxAnswer = size_t{4} << 20;

Result<UniqueFd> Connect(const Relay& relay) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  if (const int error = getaddrinfo(relay.host.c_str(), relay.port.c_str(), &hints, &found);
      error != 0) {
    return Fail(ErrorCode::kNotFound, relay.host + ": " + gai_strerror(error));
  }
  const std::unique_ptr<addrinfo, decltype(&freeaddrinfo)> all(found, freeaddrinfo);
  for (const addrinfo* at = found; at != nullptr; at = at->ai_next) {
    UniqueFd fd(socket(at->ai_family, at->ai_socktype | SOCK_CLOEXEC, at->ai_protocol));
    if (!fd) continue;
    for (const int direction : {SO_RCVTIMEO, SO_SNDTIMEO})
      (void)setsockopt(fd.get(), SOL_SOCKET, direction, &kPatience, sizeof(kPatience));
    if (connect(fd.get(), at->ai_addr, at->ai_addrlen) == 0) return fd;
  }
  return FailErrno(relay.host + ":" + relay.port);
}

}  // namespace

Result<std::string> ReadMetrics(const Relay& relay) {
  WEFT_ASSIGN(const UniqueFd fd, Connect(relay));
  const std::string request =
      "GET /metrics HTTP/1.1\r\nHost: " + relay.host + "\r\nConnection: close\r\n\r\n";
  if (send(fd.get(), request.data(), request.size(), MSG_NOSIGNAL) !=
      static_cast<ssize_t>(request.size())) {
    return FailErrno(relay.host + ": the request");
  }
  std::string answer;
  std::array<char, 16384> part;
  ssize_t n = 0;
  while ((n = recv(fd.get(), part.data(), part.size(), 0)) > 0) {
    answer.append(part.data(), static_cast<size_t>(n));
    if (answer.size() > kMaxAnswer) return Fail(ErrorCode::kLimit, "an answer above 4 MiB");
  }
  if (n < 0) return FailErrno(relay.host + ": the answer");
  const size_t head = answer.find("\r\n\r\n");
  if (head == std::string::npos || answer.find(" 200 ") > answer.find("\r\n"))
    return Fail(ErrorCode::kCorrupt, "answered: " + answer.substr(0, answer.find("\r\n")));
  return answer.substr(head + 4);
}

uint64_t StoredEvents(std::string_view metrics, std::string_view name_space,
                      std::string_view trace) {
  const std::string wanted = "\nweft_events_delivered_total{namespace=\"" +
                             std::string(name_space) + "\",trace=\"" + std::string(trace) + "\"} ";
  const size_t at = metrics.find(wanted);
  if (at == std::string_view::npos) return 0;
  const std::string number(metrics.substr(at + wanted.size(), 32));
  return static_cast<uint64_t>(std::strtod(number.c_str(), nullptr));
}

}  // namespace weft::install_test
