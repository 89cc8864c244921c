// SPDX-License-Identifier: Apache-2.0
// A deadline that expires while its thread is busy: Asio queues the timer's handler and the handler
// of what came in time at once, the timer's last.
#include "relay/ingest/deadline.h"

#include <gtest/gtest.h>

#include <array>
#include <asio/io_context.hpp>
#include <asio/local/connect_pair.hpp>
#include <asio/local/stream_protocol.hpp>
#include <asio/read.hpp>
#include <asio/write.hpp>
#include <optional>
#include <thread>

namespace weft::ingest {
namespace {

using Socket = asio::local::stream_protocol::socket;
constexpr std::chrono::milliseconds kShort{5};

// A socket that is read within a deadline, as the relay does: what came in time frees both.
struct Reader {
  explicit Reader(asio::io_context& io) : socket(io), peer(io) {
    asio::local::connect_pair(socket, peer);
  }
  Socket socket;
  Socket peer;
  std::array<char, 24> bytes{};
  std::optional<Deadline> deadline;
};

TEST(Deadline, IsNotCalledOnceItWasLiftedEvenIfItHasExpired) {
  asio::io_context io;
  auto reader = std::make_unique<Reader>(io);
  bool is_late = false;
  bool is_read = false;
  reader->deadline.emplace(io.get_executor(), kShort, [&is_late, socket = &reader->socket] {
    is_late = true;
    socket->close();
  });
  asio::async_read(reader->socket, asio::buffer(reader->bytes),
                   [&](const std::error_code& error, std::size_t) {
                     is_read = !error;
                     reader->deadline->Lift();
                     reader.reset();
                   });
  asio::write(reader->peer, asio::buffer(std::array<char, 24>{}));
  std::this_thread::sleep_for(2 * kShort);
  io.run();
  EXPECT_TRUE(is_read);
  EXPECT_FALSE(is_late);
}

TEST(Deadline, IsNotCalledOnceItIsGoneEvenIfItHasExpired) {
  asio::io_context io;
  bool is_late = false;
  auto deadline =
      std::make_unique<Deadline>(io.get_executor(), kShort, [&is_late] { is_late = true; });
  io.post([&deadline] { deadline.reset(); });
  std::this_thread::sleep_for(2 * kShort);
  io.run();
  EXPECT_FALSE(is_late);
}

TEST(Deadline, IsCalledOnceAndMayDestroyItself) {
  asio::io_context io;
  int calls = 0;
  std::unique_ptr<Deadline> deadline;
  deadline = std::make_unique<Deadline>(io.get_executor(), kShort, [&] {
    calls++;
    deadline.reset();
  });
  io.run();
  EXPECT_EQ(calls, 1);
}

}  // namespace
}  // namespace weft::ingest
