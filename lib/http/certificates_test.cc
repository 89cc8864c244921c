// SPDX-License-Identifier: Apache-2.0
// Certificates: good for their name and time, and for nothing else. That TLS takes them is in
// server_test.cc.
#include "lib/http/certificates.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace weft::http {
namespace {

using std::chrono::hours;

constexpr WallTime kNow{std::chrono::seconds(1'800'000'000)};

KeyPair Authority() { return *MakeAuthority("weft", {.now = kNow, .lifetime = hours(1000)}); }

TEST(Certificates, AreGoodForTheirNamesAndTime) {
  const KeyPair ca = Authority();
  const auto server = MakeServerCertificate(ca, {"weft-webhook.weft.svc", "other"},
                                            {.now = kNow, .lifetime = hours(100)});
  ASSERT_TRUE(server.has_value()) << server.error().message;
  EXPECT_THAT(server->key_pem, testing::StartsWith("-----BEGIN PRIVATE KEY-----"));
  const auto good = [&](const std::string& name, WallTime now, hours margin) {
    return IsGoodFor(server->certificate_pem, ca.certificate_pem, name, now, margin);
  };
  EXPECT_TRUE(good("weft-webhook.weft.svc", kNow, hours(1)));
  EXPECT_TRUE(good("other", kNow, hours(99)));
  EXPECT_FALSE(good("third", kNow, hours(1)));
  EXPECT_FALSE(good("other", kNow, hours(101)));
  EXPECT_FALSE(good("other", kNow + hours(99), hours(2)));
}

TEST(Certificates, RefusesCertificatesOfAnotherAuthority) {
  const auto server =
      MakeServerCertificate(Authority(), {"a"}, {.now = kNow, .lifetime = hours(100)});
  ASSERT_TRUE(server.has_value());
  EXPECT_FALSE(
      IsGoodFor(server->certificate_pem, Authority().certificate_pem, "a", kNow, hours(1)));
}

TEST(Certificates, AnAuthorityIsGoodForItsTimeAndIsNoServer) {
  const KeyPair ca = Authority();
  const auto server = MakeServerCertificate(ca, {"a"}, {.now = kNow, .lifetime = hours(100)});
  EXPECT_TRUE(IsGoodAuthority(ca.certificate_pem, kNow, hours(999)));
  EXPECT_FALSE(IsGoodAuthority(ca.certificate_pem, kNow, hours(1001)));
  EXPECT_FALSE(IsGoodAuthority(server->certificate_pem, kNow, hours(1)));
  EXPECT_FALSE(IsGoodAuthority("", kNow, hours(1)));
}

TEST(Certificates, RefusesMalformedInput) {
  EXPECT_FALSE(IsGoodFor("", "", "a", kNow, hours(1)));
  EXPECT_FALSE(IsGoodFor("x", Authority().certificate_pem, "a", kNow, hours(1)));
  EXPECT_FALSE(MakeServerCertificate({"x", "y"}, {"a"}, {.now = kNow, .lifetime = hours(1)}));
  EXPECT_FALSE(MakeServerCertificate(Authority(), {}, {.now = kNow, .lifetime = hours(1)}));
}

}  // namespace
}  // namespace weft::http
