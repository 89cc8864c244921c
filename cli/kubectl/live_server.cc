// SPDX-License-Identifier: Apache-2.0
// See live_server.h. The one file of this folder with Asio's headers.
#include "cli/kubectl/live_server.h"

#include <asio.hpp>
#include <asio/experimental/as_tuple.hpp>
#include <chrono>
#include <thread>
#include <vector>

#include "lib/live/viewer.h"

namespace weft::kubectl {
namespace {

using asio::ip::tcp;
constexpr auto kNoThrow = asio::experimental::as_tuple(asio::use_awaitable);

// Viewers of one person. Each has up to some MiB of answers that it has not read.
constexpr int kMaxViewers = 32;
constexpr std::size_t kReadBytes = 4096;
// After an error of accept, such as too many open files.
constexpr std::chrono::milliseconds kPause{500};

class AsioServer : public LiveServer {
 public:
  AsioServer(LiveFeed& feed, std::function<void(const std::string&)> log)
      : feed_(feed), log_(std::move(log)) {}
  AsioServer(const AsioServer&) = delete;
  AsioServer& operator=(const AsioServer&) = delete;
  ~AsioServer() override {
    io_.stop();
    if (thread_.joinable()) thread_.join();
  }

  Status Listen(std::uint16_t port) {
    const tcp::endpoint endpoint(asio::ip::address_v4::loopback(), port);
    std::error_code error;
    (void)acceptor_.open(endpoint.protocol(), error);
    if (!error) (void)acceptor_.set_option(tcp::acceptor::reuse_address(true), error);
    if (!error) (void)acceptor_.bind(endpoint, error);
    if (!error) (void)acceptor_.listen(kMaxViewers, error);
    if (error) {
      return Fail(ErrorCode::kInvalid, "127.0.0.1:" + std::to_string(port) + ": " +
                                           error.message() +
                                           "; name another port with --serve=PORT");
    }
    asio::co_spawn(io_, Accept(), asio::detached);
    thread_ = std::thread([this] { io_.run(); });
    return {};
  }

  [[nodiscard]] std::uint16_t port() const override { return acceptor_.local_endpoint().port(); }

 private:
  asio::awaitable<void> Accept() {
    for (;;) {
      auto [error, socket] = co_await acceptor_.async_accept(kNoThrow);
      if (error) {
        asio::steady_timer timer(io_, kPause);
        co_await timer.async_wait(kNoThrow);
      } else if (viewers_ < kMaxViewers) {
        asio::co_spawn(io_, Serve(std::move(socket)), asio::detached);
      } else {
        log_("a viewer was refused: " + std::to_string(kMaxViewers) + " are attached");
      }
    }
  }

  asio::awaitable<void> Serve(tcp::socket socket) {
    viewers_++;
    std::error_code ignored;
    (void)socket.set_option(tcp::no_delay(true), ignored);
    live::Viewer viewer(feed_.trace(), feed_.packets(), ++last_number_);
    std::vector<std::uint8_t> buffer(kReadBytes);
    for (Status status; status;) {
      auto [error, size] = co_await socket.async_read_some(asio::buffer(buffer), kNoThrow);
      if (error) break;
      status = Take(viewer, Bytes(buffer).first(size));
      while (status && !viewer.out().empty()) {
        const std::string out = std::exchange(viewer.out(), "");
        auto [failed, sent] = co_await asio::async_write(socket, asio::buffer(out), kNoThrow);
        status = failed ? Fail(ErrorCode::kClosed, "") : Take(viewer, {});
      }
      if (!status && status.error().code != ErrorCode::kClosed) {
        log_("a viewer's connection ends: " + status.error().message);
      }
    }
    viewers_--;
    Tell(viewer);
  }

  Status Take(live::Viewer& viewer, Bytes bytes) {
    const std::lock_guard lock(feed_.mutex());
    return viewer.Receive(bytes);
  }

  void Tell(const live::Viewer& viewer) {
    if (viewer.raised() > 0) {
      log_(std::to_string(viewer.raised()) +
           " events of new streams came after later ones, and a viewer got them with a later "
           "time; kubectl weft download has the times as they were recorded");
    }
    if (viewer.left_out() > 0) {
      log_(std::to_string(viewer.left_out()) +
           " packets came too late for a viewer and cannot be decoded: it did not get them");
    }
  }

  LiveFeed& feed_;
  const std::function<void(const std::string&)> log_;
  asio::io_context io_{1};
  tcp::acceptor acceptor_{io_};
  std::thread thread_;
  int viewers_ = 0;
  std::uint64_t last_number_ = 0;
};

}  // namespace

Result<std::unique_ptr<LiveServer>> LiveServer::Start(std::uint16_t port, LiveFeed& feed,
                                                      std::function<void(const std::string&)> log) {
  auto server = std::make_unique<AsioServer>(feed, std::move(log));
  WEFT_TRY(server->Listen(port));
  return server;
}

}  // namespace weft::kubectl
