// SPDX-License-Identifier: Apache-2.0
// Certificates in Secrets.
#include "controller/certificates.h"

#include <algorithm>

#include "lib/kube/base64.h"
#include "lib/kube/time.h"

namespace weft::controller {

using kube::Json;
using kube::TextAt;

namespace {

constexpr const char* kPrevious = "previous.crt";

}  // namespace

// Nothing in it: not there, or not as we write it.
Result<Certificates::Kept> Certificates::Read(const std::string& secret) {
  const auto object =
      client_.Get({.resource = kube::kSecrets, .name_space = names_.name_space, .name = secret});
  if (!object && object.error().code == ErrorCode::kNotFound) return Kept{};
  if (!object) return std::unexpected(object.error());
  const auto certificate = DecodeBase64(TextAt(*object, {"data", "tls.crt"}));
  const auto key = DecodeBase64(TextAt(*object, {"data", "tls.key"}));
  if (!certificate || !key) return Kept{};
  return Kept{.pair = {*certificate, *key},
              .previous_pem = DecodeBase64(TextAt(*object, {"data", kPrevious})).value_or("")};
}

Status Certificates::Write(const std::string& secret, const Kept& kept) {
  Json data = {{"tls.crt", EncodeBase64(kept.pair.certificate_pem)},
               {"tls.key", EncodeBase64(kept.pair.key_pem)}};
  if (!kept.previous_pem.empty()) data[kPrevious] = EncodeBase64(kept.previous_pem);
  const auto written =
      client_.Apply({.resource = kube::kSecrets, .name_space = names_.name_space, .name = secret},
                    {{"apiVersion", "v1"},
                     {"kind", "Secret"},
                     {"metadata", {{"name", secret}, {"namespace", names_.name_space}}},
                     {"type", "kubernetes.io/tls"},
                     {"data", std::move(data)}});
  if (!written) return std::unexpected(written.error());
  return {};
}

Result<Certificates::Kept> Certificates::Authority(kube::WallTime now) {
  constexpr std::chrono::hours kStillGood{0};
  WEFT_ASSIGN(Kept kept, Read(names_.authority_secret));
  if (!http::IsGoodAuthority(kept.pair.certificate_pem, now, kRenewBefore)) {
    kept.previous_pem = std::move(kept.pair.certificate_pem);
    WEFT_ASSIGN(kept.pair, http::MakeAuthority("weft " + names_.name_space,
                                               {.now = now, .lifetime = kAuthorityLifetime}));
    WEFT_TRY(Write(names_.authority_secret, kept));
  }
  if (!http::IsGoodAuthority(kept.previous_pem, now, kStillGood)) kept.previous_pem.clear();
  return kept;
}

// Server-side apply of the one field that is ours in each webhook; the rest is the chart's.
Result<bool> Certificates::TellApiServer(const std::string& bundle_pem) {
  const kube::Address address{.resource = kube::kMutatingWebhooks,
                              .name = names_.webhook_configuration};
  WEFT_ASSIGN(const Json configuration, client_.Get(address));
  const std::string bundle = EncodeBase64(bundle_pem);
  Json webhooks = Json::array();
  bool differs = false;
  const Json* there = kube::At(configuration, {"webhooks"});
  for (const Json& webhook : there != nullptr ? *there : Json::array()) {
    differs = differs || TextAt(webhook, {"clientConfig", "caBundle"}) != bundle;
    webhooks.push_back(
        {{"name", TextAt(webhook, {"name"})}, {"clientConfig", {{"caBundle", bundle}}}});
  }
  if (!differs) return false;
  const auto applied = client_.Apply(address, {{"apiVersion", "admissionregistration.k8s.io/v1"},
                                               {"kind", "MutatingWebhookConfiguration"},
                                               {"metadata", {{"name", address.name}}},
                                               {"webhooks", std::move(webhooks)}});
  if (!applied) return std::unexpected(applied.error());
  return true;
}

Result<bool> Certificates::TellNodes(const std::string& bundle_pem) {
  const kube::Address address{.resource = kube::kConfigMaps,
                              .name_space = names_.name_space,
                              .name = names_.relay_authority_map};
  const auto there = client_.Get(address);
  if (!there && there.error().code != ErrorCode::kNotFound) return std::unexpected(there.error());
  if (there && TextAt(*there, {"data", "ca.crt"}) == bundle_pem) return false;
  const auto applied = client_.Apply(
      address, {{"apiVersion", "v1"},
                {"kind", "ConfigMap"},
                {"metadata", {{"name", address.name}, {"namespace", address.name_space}}},
                {"data", {{"ca.crt", bundle_pem}}}});
  if (!applied) return std::unexpected(applied.error());
  return true;
}

Result<std::chrono::milliseconds> Certificates::Serve(const std::string& secret,
                                                      const std::vector<std::string>& hosts,
                                                      const Kept& authority, bool is_news,
                                                      kube::WallTime now) {
  WEFT_ASSIGN(const Kept server, Read(secret));
  const auto is_good = [&](const std::string& authority_pem, std::chrono::hours margin) {
    return std::ranges::all_of(hosts, [&](const std::string& host) {
      return http::IsGoodFor(server.pair.certificate_pem, authority_pem, host, now, margin);
    });
  };
  if (is_good(authority.pair.certificate_pem, kRenewBefore)) return kCheckInterval;
  // The old one serves until then.
  if (is_news && is_good(authority.previous_pem, std::chrono::hours(1))) return kSpreadTime;
  WEFT_ASSIGN(http::KeyPair made,
              http::MakeServerCertificate(authority.pair, hosts,
                                          {.now = now, .lifetime = kServerLifetime}));
  WEFT_TRY(Write(secret, {.pair = std::move(made), .previous_pem = ""}));
  return kCheckInterval;
}

Result<std::chrono::milliseconds> Certificates::Reconcile() {
  const kube::WallTime now = std::chrono::system_clock::now();
  WEFT_ASSIGN(const Kept authority, Authority(now));
  const std::string bundle = authority.pair.certificate_pem + authority.previous_pem;
  WEFT_ASSIGN(const bool is_news_to_nodes, TellNodes(bundle));
  WEFT_ASSIGN(const bool is_news, TellApiServer(bundle));
  const auto host = [this](const std::string& service) {
    return service + "." + names_.name_space + ".svc";
  };
  // The second name is the first relay's, to which a Trace's nodes connect.
  const std::vector<std::string> relay = {
      host(names_.relay_service), host(names_.relay_service + "-0." + names_.relay_service)};
  WEFT_ASSIGN(const auto webhook_again, Serve(names_.webhook_secret, {host(names_.webhook_service)},
                                              authority, is_news, now));
  WEFT_ASSIGN(const auto relay_again,
              Serve(names_.relay_secret, relay, authority, is_news || is_news_to_nodes, now));
  return std::min(webhook_again, relay_again);
}

}  // namespace weft::controller
