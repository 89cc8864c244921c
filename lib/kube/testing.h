// SPDX-License-Identifier: Apache-2.0
// An HTTP/1.1 server on loopback for tests: a real socket, whose answers a test writes byte by
// byte. One thread per connection; one request per connection.
#ifndef WEFT_LIB_KUBE_TESTING_H_
#define WEFT_LIB_KUBE_TESTING_H_

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <array>
#include <cstdlib>
#include <functional>
#include <list>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "lib/base/unique_fd.h"

namespace weft::kube::testing {

struct SeenRequest {
  std::string head;  // request line and headers
  std::string body;
};

class LoopbackServer {
 public:
  // Sends bytes to the client; false: it is gone.
  using Write = std::function<bool(std::string_view)>;
  using Handler = std::function<void(const SeenRequest&, const Write&)>;

  explicit LoopbackServer(Handler handler)
      : handler_(std::move(handler)), listener_(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in address = {};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof(address);
    if (bind(listener_.get(), reinterpret_cast<sockaddr*>(&address), size) != 0 ||
        listen(listener_.get(), 16) != 0 ||
        getsockname(listener_.get(), reinterpret_cast<sockaddr*>(&address), &size) != 0)
      std::abort();
    port_ = ntohs(address.sin_port);
    acceptor_ = std::thread([this] { Accept(); });
  }

  ~LoopbackServer() {
    shutdown(listener_.get(), SHUT_RDWR);
    acceptor_.join();
    for (std::thread& thread : threads_) thread.join();
  }

  [[nodiscard]] std::string url() const { return "http://127.0.0.1:" + std::to_string(port_); }

  std::vector<SeenRequest> seen() {
    const std::lock_guard<std::mutex> lock(mutex_);
    return seen_;
  }

 private:
  void Accept() {
    for (;;) {
      const int fd = accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC);
      if (fd < 0) return;
      threads_.emplace_back([this, fd] { Serve(UniqueFd(fd)); });
    }
  }

  void Serve(UniqueFd fd) {
    std::string text;
    std::size_t end = std::string::npos;
    while ((end = text.find("\r\n\r\n")) == std::string::npos) {
      if (!Read(fd.get(), text)) return;
    }
    SeenRequest request{.head = text.substr(0, end), .body = text.substr(end + 4)};
    constexpr std::string_view kLength = "Content-Length:";
    if (const std::size_t at = request.head.find(kLength); at != std::string::npos) {
      const std::size_t length = std::stoul(request.head.substr(at + kLength.size()));
      while (request.body.size() < length && Read(fd.get(), request.body)) {
      }
    }
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      seen_.push_back(request);
    }
    handler_(request, [&fd](std::string_view bytes) {
      return send(fd.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL) ==
             static_cast<ssize_t>(bytes.size());
    });
  }

  static bool Read(int fd, std::string& text) {
    std::array<char, 4096> chunk;
    const ssize_t got = recv(fd, chunk.data(), chunk.size(), 0);
    if (got > 0) text.append(chunk.data(), static_cast<std::size_t>(got));
    return got > 0;
  }

  Handler handler_;
  UniqueFd listener_;
  int port_ = 0;
  std::mutex mutex_;
  std::vector<SeenRequest> seen_;
  std::list<std::thread> threads_;  // touched by the acceptor, and after it has ended
  std::thread acceptor_;
};

// A whole answer that ends the connection.
inline std::string Answer(int status, std::string_view body) {
  return "HTTP/1.1 " + std::to_string(status) +
         " X\r\nContent-Type: application/json\r\nConnection: close\r\nContent-Length: " +
         std::to_string(body.size()) + "\r\n\r\n" + std::string(body);
}

// The head of an answer without a known length, and one piece of its body.
inline constexpr std::string_view kChunkedHead =
    "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nConnection: close\r\n"
    "Transfer-Encoding: chunked\r\n\r\n";
inline std::string Chunk(std::string_view bytes) {
  std::array<char, 20> size = {};
  std::snprintf(size.data(), size.size(), "%zx\r\n", bytes.size());
  return size.data() + std::string(bytes) + "\r\n";
}
inline constexpr std::string_view kLastChunk = "0\r\n\r\n";

}  // namespace weft::kube::testing

#endif  // WEFT_LIB_KUBE_TESTING_H_
