// SPDX-License-Identifier: Apache-2.0
#include "node-agent/agent/consumers/dialer.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <sys/socket.h>

namespace weft::agent {
namespace {

// A listening socket on loopback, and its port.
UniqueFd Listen(uint16_t& port) {
  UniqueFd fd(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof(address);
  EXPECT_EQ(bind(fd.get(), reinterpret_cast<sockaddr*>(&address), size), 0);
  EXPECT_EQ(listen(fd.get(), 1), 0);
  EXPECT_EQ(getsockname(fd.get(), reinterpret_cast<sockaddr*>(&address), &size), 0);
  port = ntohs(address.sin_port);
  return fd;
}

TEST(Dialer, SaysWhatBecameOfEveryDial) {
  auto loop = ipc::Loop::Make();
  ASSERT_TRUE(loop);
  uint16_t port = 0;
  const UniqueFd listener = Listen(port);
  uint16_t unused_port = 0;
  Listen(unused_port).reset();
  Dialer dialer(*loop);
  int connected = 0;
  int failed = 0;
  const auto done = [&](Result<UniqueFd> socket) {
    (socket ? connected : failed)++;
    EXPECT_TRUE(socket || !socket.error().message.empty());
    if (connected + failed == 3) loop->Stop();
  };
  dialer.Dial("localhost", port, done);
  dialer.Dial("127.0.0.1", unused_port, done);
  dialer.Dial("no such name.invalid", port, done);
  ASSERT_TRUE(loop->Run());
  EXPECT_EQ(connected, 1);
  EXPECT_EQ(failed, 2);
}

}  // namespace
}  // namespace weft::agent
