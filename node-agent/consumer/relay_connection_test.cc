// SPDX-License-Identifier: Apache-2.0
// A connection to a relay, with TLS and without, against a peer that is slow, gone, or another one.
#include "node-agent/consumer/relay_connection.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <chrono>

#include "lib/http/certificates.h"

namespace weft::consumer {
namespace {

using namespace std::string_literals;

constexpr const char* kName = "relay.svc";
const http::Validity kToday{.now = std::chrono::system_clock::now(),
                            .lifetime = std::chrono::hours(24)};

// The relay's end of a socket pair.
class RelayEnd {
 public:
  RelayEnd() {
    int ends[2];
    EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
    here_.reset(ends[0]);
    node_.reset(ends[1]);
    EXPECT_EQ(fcntl(here_.get(), F_SETFL, O_NONBLOCK), 0);
  }

  UniqueFd TakeNodesEnd() { return std::move(node_); }
  [[nodiscard]] RelayTrust Trust() const { return {authority_.certificate_pem, kName}; }
  void BeginTls() {
    const auto pair = http::MakeServerCertificate(authority_, {kName}, kToday);
    tls_ = *tls::Engine::Accept(*tls::ServerContext::Make(pair->certificate_pem, pair->key_pem));
  }
  // Reads at most `most` bytes of the network, and appends to `got` what the node wrote.
  Status Turn(std::vector<uint8_t>& got, size_t most = 100'000) {
    std::vector<uint8_t> room(most);
    const ssize_t n = recv(here_.get(), room.data(), room.size(), 0);
    if (n == 0) return Fail(ErrorCode::kClosed, "the end");
    if (n < 0) return {};
    const Bytes bytes = Bytes(room).first(static_cast<size_t>(n));
    if (!tls_) {
      got.insert(got.end(), bytes.begin(), bytes.end());
      return {};
    }
    const Status status = tls_->Receive(bytes);
    Write();
    std::vector<uint8_t> plain(most);
    while (const size_t count = tls_->Read(plain).value_or(0)) {
      got.insert(got.end(), plain.begin(), plain.begin() + static_cast<ptrdiff_t>(count));
    }
    return status;
  }
  void Say(Bytes bytes) {
    if (!tls_) {
      EXPECT_EQ(send(here_.get(), bytes.data(), bytes.size(), 0),
                static_cast<ssize_t>(bytes.size()));
      return;
    }
    EXPECT_TRUE(tls_->Write(bytes));
    Write();
  }
  void End() { here_.reset(); }

 private:
  void Write() {
    const ssize_t n = send(here_.get(), tls_->out().data(), tls_->out().size(), MSG_NOSIGNAL);
    if (n > 0) tls_->Sent(static_cast<size_t>(n));
  }

  const http::KeyPair authority_ = *http::MakeAuthority("ca", kToday);
  UniqueFd here_;
  UniqueFd node_;
  std::optional<tls::Engine> tls_;
};

void Shake(RelayConnection& node, RelayEnd& relay) {
  std::vector<uint8_t> nothing;
  std::vector<uint8_t> room(1000);
  for (int i = 0; i < 10 && !node.established(); i++) {
    // Nothing to write is no reason to wake up.
    EXPECT_EQ(node.Poll(true).events, POLLIN);
    EXPECT_TRUE(relay.Turn(nothing));
    EXPECT_EQ(node.Receive(room).value_or(99), 0U);
  }
  EXPECT_TRUE(relay.Turn(nothing));
  EXPECT_TRUE(node.established());
  EXPECT_TRUE(nothing.empty());
}

TEST(RelayConnection, WaitsForASlowRelayAndLosesNothing) {
  for (const bool with_tls : {false, true}) {
    RelayEnd relay;
    RelayConnection node;
    if (with_tls) relay.BeginTls();
    ASSERT_TRUE(node.Open(relay.TakeNodesEnd(), with_tls ? relay.Trust() : RelayTrust{}));
    EXPECT_EQ(node.established(), !with_tls);
    if (with_tls) {
      EXPECT_EQ(node.Send(std::vector<uint8_t>(10), {}).value_or(99), 0U);
      Shake(node, relay);
    }
    std::vector<uint8_t> sent(3'000'000);
    for (size_t i = 0; i < sent.size(); i++) sent[i] = static_cast<uint8_t>(i * 7 + i / 999);
    std::vector<uint8_t> got;
    size_t at = 0;
    int blocked = 0;
    while (got.size() < sent.size()) {
      const Bytes rest = Bytes(sent).subspan(at);
      const size_t front = std::min<size_t>(rest.size(), 48);
      const auto n = node.Send(rest.first(front), rest.subspan(front));
      ASSERT_TRUE(n) << n.error().message;
      at += *n;
      if (*n > 0) continue;
      blocked++;
      EXPECT_TRUE(node.Flush());
      EXPECT_TRUE(at == sent.size() || (node.Poll(true).events & POLLOUT) != 0);
      ASSERT_TRUE(relay.Turn(got, 30'000));
    }
    EXPECT_EQ(got, sent);
    EXPECT_GT(blocked, 1);

    const std::vector<uint8_t> answer{'o', 'k'};
    relay.Say(answer);
    std::vector<uint8_t> room(10);
    EXPECT_EQ(node.Receive(room).value_or(0), 2U);
    EXPECT_EQ(node.Receive(room).value_or(99), 0U);
    relay.End();
    EXPECT_EQ(node.Receive(room).error().code, ErrorCode::kClosed);
  }
}

TEST(RelayConnection, RefusesARelayThatItDoesNotTrust) {
  for (const bool wrong_name : {false, true}) {
    RelayEnd relay;
    relay.BeginTls();
    RelayTrust trust = relay.Trust();
    if (wrong_name) {
      trust.server_name = "other.svc";
    } else {
      trust.authorities = http::MakeAuthority("other", kToday)->certificate_pem;
    }
    RelayConnection node;
    ASSERT_TRUE(node.Open(relay.TakeNodesEnd(), trust));
    std::vector<uint8_t> nothing;
    ASSERT_TRUE(relay.Turn(nothing));
    std::vector<uint8_t> room(1000);
    const auto got = node.Receive(room);
    ASSERT_FALSE(got);
    EXPECT_EQ(got.error().code, ErrorCode::kPermission);
    EXPECT_FALSE(node.established());
    node.Close();
    // The relay's log has the reason, too.
    const Status told = relay.Turn(nothing);
    ASSERT_FALSE(told);
    EXPECT_NE(told.error().message.find("alert"), std::string::npos) << told.error().message;
  }
}

TEST(RelayConnection, RefusesARelayWithoutTls) {
  RelayEnd relay;
  RelayConnection node;
  ASSERT_TRUE(node.Open(relay.TakeNodesEnd(), relay.Trust()));
  const std::string text = "\x20\x00\x00\x00{\"type\":\"chosen\",\"version\":1}"s;
  relay.Say(Bytes(reinterpret_cast<const uint8_t*>(text.data()), text.size()));
  std::vector<uint8_t> room(1000);
  EXPECT_EQ(node.Receive(room).error().code, ErrorCode::kCorrupt);
}

}  // namespace
}  // namespace weft::consumer
