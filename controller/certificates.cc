// SPDX-License-Identifier: Apache-2.0
// Certificates in Secrets.
#include "controller/certificates.h"

#include "lib/kube/base64.h"
#include "lib/kube/time.h"

namespace weft::controller {

using kube::Json;
using kube::TextAt;

// Nothing in it: not there, or not as we write it.
Result<http::KeyPair> Certificates::Read(const std::string& secret) {
  const auto object =
      client_.Get({.resource = kube::kSecrets, .name_space = names_.name_space, .name = secret});
  if (!object && object.error().code == ErrorCode::kNotFound) return http::KeyPair{};
  if (!object) return std::unexpected(object.error());
  const auto certificate = DecodeBase64(TextAt(*object, {"data", "tls.crt"}));
  const auto key = DecodeBase64(TextAt(*object, {"data", "tls.key"}));
  if (!certificate || !key) return http::KeyPair{};
  return http::KeyPair{*certificate, *key};
}

Status Certificates::Write(const std::string& secret, const http::KeyPair& pair) {
  const auto written =
      client_.Apply({.resource = kube::kSecrets, .name_space = names_.name_space, .name = secret},
                    {{"apiVersion", "v1"},
                     {"kind", "Secret"},
                     {"metadata", {{"name", secret}, {"namespace", names_.name_space}}},
                     {"type", "kubernetes.io/tls"},
                     {"data",
                      {{"tls.crt", EncodeBase64(pair.certificate_pem)},
                       {"tls.key", EncodeBase64(pair.key_pem)}}}});
  if (!written) return std::unexpected(written.error());
  return {};
}

Result<http::KeyPair> Certificates::Authority(kube::WallTime now) {
  WEFT_ASSIGN(http::KeyPair authority, Read(names_.authority_secret));
  if (http::IsGoodAuthority(authority.certificate_pem, now, kRenewBefore)) return authority;
  WEFT_ASSIGN(authority, http::MakeAuthority("weft " + names_.name_space,
                                             {.now = now, .lifetime = kAuthorityLifetime}));
  WEFT_TRY(Write(names_.authority_secret, authority));
  return authority;
}

// Server-side apply of the one field that is ours in each webhook; the rest is the chart's.
Status Certificates::TellApiServer(const std::string& authority_pem) {
  const kube::Address address{.resource = kube::kMutatingWebhooks,
                              .name = names_.webhook_configuration};
  WEFT_ASSIGN(const Json configuration, client_.Get(address));
  const std::string bundle = EncodeBase64(authority_pem);
  Json webhooks = Json::array();
  bool differs = false;
  const Json* there = kube::At(configuration, {"webhooks"});
  for (const Json& webhook : there != nullptr ? *there : Json::array()) {
    differs = differs || TextAt(webhook, {"clientConfig", "caBundle"}) != bundle;
    webhooks.push_back(
        {{"name", TextAt(webhook, {"name"})}, {"clientConfig", {{"caBundle", bundle}}}});
  }
  if (!differs) return {};
  const auto applied = client_.Apply(address, {{"apiVersion", "admissionregistration.k8s.io/v1"},
                                               {"kind", "MutatingWebhookConfiguration"},
                                               {"metadata", {{"name", address.name}}},
                                               {"webhooks", std::move(webhooks)}});
  if (!applied) return std::unexpected(applied.error());
  return {};
}

Status Certificates::Reconcile() {
  const kube::WallTime now = std::chrono::system_clock::now();
  WEFT_ASSIGN(const http::KeyPair authority, Authority(now));
  const std::string host = names_.webhook_service + "." + names_.name_space + ".svc";
  WEFT_ASSIGN(const http::KeyPair server, Read(names_.webhook_secret));
  if (!http::IsGoodFor(server.certificate_pem, authority.certificate_pem, host, now,
                       kRenewBefore)) {
    WEFT_ASSIGN(
        const http::KeyPair made,
        http::MakeServerCertificate(authority, {host}, {.now = now, .lifetime = kServerLifetime}));
    WEFT_TRY(Write(names_.webhook_secret, made));
  }
  return TellApiServer(authority.certificate_pem);
}

}  // namespace weft::controller
