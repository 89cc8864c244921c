// SPDX-License-Identifier: Apache-2.0
// Two engines that are connected in memory: what they believe, what they refuse, and whether
// whole streams arrive that are cut anywhere.
#include "lib/tls/engine.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <vector>

#include "lib/http/certificates.h"

namespace weft::tls {
namespace {

constexpr const char* kName = "weft-relay-0.weft-relay.weft.svc";
constexpr std::chrono::hours kDay{24};

const http::Validity kToday{.now = std::chrono::system_clock::now(), .lifetime = kDay};
const http::Validity kLongAgo{.now = std::chrono::system_clock::now() - 10 * kDay,
                              .lifetime = kDay};

http::KeyPair MakeAuthority(const char* name = "ca") { return *http::MakeAuthority(name, kToday); }

Engine ServerOf(const http::KeyPair& authority, const std::string& name = kName,
                const http::Validity& validity = kToday) {
  const auto pair = http::MakeServerCertificate(authority, {"other.svc", name}, validity);
  return *Engine::Accept(*ServerContext::Make(pair->certificate_pem, pair->key_pem));
}

Engine ClientOf(const std::string& bundle, const std::string& name = kName) {
  return *Engine::Connect(*ClientContext::Make(bundle), name);
}

// Moves at most `most` bytes of what one says to the other.
Status Move(Engine& from, Engine& to, size_t most = SIZE_MAX) {
  const Bytes out = from.out();
  const std::vector<uint8_t> part(out.begin(),
                                  out.begin() + static_cast<ptrdiff_t>(std::min(out.size(), most)));
  from.Sent(part.size());
  return to.Receive(part);
}

// Until neither says anything. Returns the first error; the other side then still hears of it.
Status Shake(Engine& client, Engine& server, size_t most = SIZE_MAX) {
  Status status;
  while (!client.out().empty() || !server.out().empty()) {
    const Status to_server = Move(client, server, most);
    const Status to_client = Move(server, client, most);
    if (status && !to_server) status = to_server;
    if (status && !to_client) status = to_client;
    if (!status) break;
  }
  return status;
}

std::vector<uint8_t> ReadAll(Engine& from) {
  std::vector<uint8_t> all, room(1000);
  while (const size_t n = from.Read(room).value_or(0)) {
    all.insert(all.end(), room.begin(), room.begin() + static_cast<ptrdiff_t>(n));
  }
  return all;
}

TEST(Engine, ConnectsAndMovesBytesBothWays) {
  const auto authority = MakeAuthority();
  Engine client = ClientOf(authority.certificate_pem);
  Engine server = ServerOf(authority);
  EXPECT_FALSE(client.established());
  const Status status = Shake(client, server);
  ASSERT_TRUE(status) << status.error().message;
  ASSERT_TRUE(client.established() && server.established());
  // A server never writes by itself, so that a client need not read.
  EXPECT_TRUE(server.out().empty());
  const std::vector<uint8_t> hello{'h', 'i'};
  ASSERT_TRUE(client.Write(hello));
  EXPECT_GT(client.out().size(), hello.size());
  ASSERT_TRUE(Move(client, server));
  EXPECT_EQ(ReadAll(server), hello);
  ASSERT_TRUE(server.Write(hello));
  ASSERT_TRUE(Move(server, client));
  EXPECT_EQ(ReadAll(client), hello);
}

TEST(Engine, TakesBytesHoweverTheyAreCut) {
  const auto authority = MakeAuthority();
  std::mt19937 random(1);
  for (const size_t most : {size_t{1}, size_t{7}, size_t{1000}, size_t{20'000}}) {
    Engine client = ClientOf(authority.certificate_pem);
    Engine server = ServerOf(authority);
    const Status status = Shake(client, server, most);
    ASSERT_TRUE(status) << status.error().message;
    std::vector<uint8_t> sent(100'000), got;
    for (uint8_t& byte : sent) byte = static_cast<uint8_t>(random());
    ASSERT_TRUE(client.Write(sent));
    while (!client.out().empty()) {
      ASSERT_TRUE(Move(client, server, most));
      const auto part = ReadAll(server);
      got.insert(got.end(), part.begin(), part.end());
    }
    EXPECT_EQ(got, sent) << most;
  }
}

TEST(Engine, BelievesOldAndNewAuthorityOfABundle) {
  const auto before = MakeAuthority("before");
  const auto after = MakeAuthority("after");
  for (const auto* authority : {&before, &after}) {
    Engine client = ClientOf(after.certificate_pem + before.certificate_pem);
    Engine server = ServerOf(*authority);
    EXPECT_TRUE(Shake(client, server));
    EXPECT_TRUE(client.established());
  }
}

TEST(Engine, RefusesAnotherAuthority) {
  const auto authority = MakeAuthority();
  Engine client = ClientOf(MakeAuthority().certificate_pem);
  Engine server = ServerOf(authority);
  const Status status = Shake(client, server);
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().code, ErrorCode::kPermission);
  EXPECT_NE(status.error().message.find("certificate"), std::string::npos);
  EXPECT_FALSE(client.established());
  // The server hears of it.
  const Status told = Move(client, server);
  ASSERT_FALSE(told);
  EXPECT_NE(told.error().message.find("alert"), std::string::npos) << told.error().message;
}

TEST(Engine, RefusesACertificateOfAnotherName) {
  const auto authority = MakeAuthority();
  Engine client = ClientOf(authority.certificate_pem);
  Engine server = ServerOf(authority, "weft-relay-1.weft-relay.weft.svc");
  const Status status = Shake(client, server);
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().code, ErrorCode::kPermission);
  EXPECT_NE(status.error().message.find("hostname mismatch"), std::string::npos);
}

TEST(Engine, RefusesAnExpiredCertificate) {
  const auto authority = MakeAuthority();
  Engine client = ClientOf(authority.certificate_pem);
  Engine server = ServerOf(authority, kName, kLongAgo);
  const Status status = Shake(client, server);
  ASSERT_FALSE(status);
  EXPECT_NE(status.error().message.find("expired"), std::string::npos);
}

TEST(Engine, RefusesGarbage) {
  const auto authority = MakeAuthority();
  const std::string text = "GET / HTTP/1.1\r\nHost: weft-relay\r\n\r\n";
  const Bytes garbage(reinterpret_cast<const uint8_t*>(text.data()), text.size());
  Engine server = ServerOf(authority);
  EXPECT_EQ(server.Receive(garbage).error().code, ErrorCode::kCorrupt);
  Engine client = ClientOf(authority.certificate_pem);
  EXPECT_EQ(client.Receive(garbage).error().code, ErrorCode::kCorrupt);
}

TEST(Engine, RefusesBytesThatWereChangedOnTheWay) {
  const auto authority = MakeAuthority();
  Engine client = ClientOf(authority.certificate_pem);
  Engine server = ServerOf(authority);
  ASSERT_TRUE(Shake(client, server));
  ASSERT_TRUE(client.Write(std::vector<uint8_t>(100, 1)));
  std::vector<uint8_t> changed(client.out().begin(), client.out().end());
  changed.back() ^= 1;
  ASSERT_TRUE(server.Receive(changed));
  std::vector<uint8_t> room(1000);
  EXPECT_EQ(server.Read(room).error().code, ErrorCode::kCorrupt);
}

TEST(Context, RefusesWhatIsNoCertificate) {
  const auto authority = MakeAuthority();
  const auto pair = http::MakeServerCertificate(authority, {kName}, kToday);
  EXPECT_FALSE(ClientContext::Make(""));
  EXPECT_FALSE(ClientContext::Make("-----BEGIN CERTIFICATE-----\nno\n"));
  EXPECT_FALSE(ClientContext::Make(std::string(kMaxBundleBytes + 1, ' ')));
  EXPECT_FALSE(ServerContext::Make("", pair->key_pem));
  EXPECT_FALSE(ServerContext::Make(pair->certificate_pem, ""));
  EXPECT_FALSE(ServerContext::Make(pair->certificate_pem, authority.key_pem));
}

}  // namespace
}  // namespace weft::tls
