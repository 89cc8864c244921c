// SPDX-License-Identifier: Apache-2.0
// The CA, the webhook's certificate and what the API server believes, over the years.
#include "controller/certificates.h"

#include <gtest/gtest.h>

#include <map>

#include "lib/kube/base64.h"
#include "lib/kube/testing_transport.h"

namespace weft::controller {
namespace {

using kube::Json;
using kube::TextAt;

constexpr const char* kHost = "weft-webhook.weft.svc";
constexpr std::chrono::hours kDay{24};

// Two Secrets and a MutatingWebhookConfiguration, at an API server that applies what it is sent.
class CertificatesTest : public testing::Test {
 protected:
  // Secret NAME, with a CA of which `left` is left, or the webhook's certificate of it.
  http::KeyPair MakeAuthority(std::chrono::hours left) {
    auto made = http::MakeAuthority("weft weft", {.now = now_, .lifetime = left});
    EXPECT_TRUE(made);
    Put("weft-ca", *made);
    return *made;
  }
  void MakeServer(const http::KeyPair& authority) {
    Put("weft-webhook-tls", *http::MakeServerCertificate(
                                authority, {kHost}, {.now = now_, .lifetime = kServerLifetime}));
  }
  std::chrono::milliseconds Reconcile() {
    const auto again = certificates_.Reconcile();
    EXPECT_TRUE(again) << again.error().message;
    return again.value_or(std::chrono::milliseconds(0));
  }
  std::string Of(const std::string& secret, const char* key = "tls.crt") {
    return DecodeBase64(TextAt(objects_[secret], {"data", key})).value_or("");
  }
  std::string Bundle() {
    return DecodeBase64(
               TextAt(objects_["weft-webhook"]["webhooks"][0], {"clientConfig", "caBundle"}))
        .value_or("");
  }
  std::string NodesBundle() { return TextAt(objects_["weft-relay-ca"], {"data", "ca.crt"}); }
  bool ServerIsOf(const std::string& authority_pem) {
    return http::IsGoodFor(Of("weft-webhook-tls"), authority_pem, kHost, now_, kDay);
  }

  const kube::WallTime now_ = std::chrono::system_clock::now();
  std::map<std::string, Json> objects_{{"weft-webhook", {{"webhooks", {{{"name", "w"}}}}}}};

 private:
  void Put(const std::string& secret, const http::KeyPair& pair) {
    objects_[secret] = {{"data",
                         {{"tls.crt", EncodeBase64(pair.certificate_pem)},
                          {"tls.key", EncodeBase64(pair.key_pem)}}}};
  }
  kube::HttpReply Serve(const kube::HttpRequest& request) {
    std::string name = request.target.substr(0, request.target.find('?'));
    name = name.substr(name.rfind('/') + 1);
    if (request.method == "PATCH") objects_[name] = Json::parse(request.body);
    return objects_.contains(name) ? kube::testing::Reply(200, objects_[name])
                                   : kube::testing::Reply(404, {});
  }

  kube::Client client_{std::make_unique<kube::testing::TestTransport>(
                           [this](const kube::HttpRequest& request) { return Serve(request); }),
                       "weft-test"};
  Certificates certificates_{client_, {.name_space = "weft"}};
};

TEST_F(CertificatesTest, MakesBothAtOnceWhereThereAreNone) {
  EXPECT_EQ(Reconcile(), kCheckInterval);
  EXPECT_EQ(Bundle(), Of("weft-ca"));
  EXPECT_EQ(NodesBundle(), Of("weft-ca"));
  EXPECT_TRUE(ServerIsOf(Of("weft-ca")));
  const std::string server = Of("weft-webhook-tls");
  EXPECT_EQ(Reconcile(), kCheckInterval);
  EXPECT_EQ(Of("weft-webhook-tls"), server);
}

TEST_F(CertificatesTest, TheRelayHasACertificateForTheServiceAndForItself) {
  EXPECT_EQ(Reconcile(), kCheckInterval);
  for (const char* host : {"weft-relay.weft.svc", "weft-relay-0.weft-relay.weft.svc"}) {
    EXPECT_TRUE(http::IsGoodFor(Of("weft-relay-tls"), Of("weft-ca"), host, now_, kDay)) << host;
  }
  EXPECT_FALSE(http::IsGoodFor(Of("weft-relay-tls"), Of("weft-ca"), kHost, now_, kDay));
  const std::string relay = Of("weft-relay-tls");
  EXPECT_EQ(Reconcile(), kCheckInterval);
  EXPECT_EQ(Of("weft-relay-tls"), relay);
}

TEST_F(CertificatesTest, AnOldAuthorityIsBelievedBesideTheNewOne) {
  const http::KeyPair old = MakeAuthority(20 * kDay);
  MakeServer(old);
  EXPECT_EQ(Reconcile(), kSpreadTime);
  const std::string fresh = Of("weft-ca");
  EXPECT_NE(fresh, old.certificate_pem);
  EXPECT_EQ(Of("weft-ca", "previous.crt"), old.certificate_pem);
  EXPECT_EQ(Bundle(), fresh + old.certificate_pem);
  EXPECT_TRUE(ServerIsOf(old.certificate_pem)) << "API servers do not know the new one yet";

  EXPECT_EQ(Reconcile(), kCheckInterval);
  EXPECT_EQ(Of("weft-ca"), fresh);
  EXPECT_TRUE(ServerIsOf(fresh));
  EXPECT_EQ(Bundle(), fresh + old.certificate_pem);
}

TEST_F(CertificatesTest, AnExpiredAuthorityIsNotBelieved) {
  MakeServer(MakeAuthority(std::chrono::hours(-1)));
  EXPECT_EQ(Reconcile(), kCheckInterval);
  EXPECT_EQ(Bundle(), Of("weft-ca"));
  EXPECT_TRUE(ServerIsOf(Of("weft-ca")));
}

}  // namespace
}  // namespace weft::controller
