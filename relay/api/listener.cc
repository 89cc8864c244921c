// SPDX-License-Identifier: Apache-2.0
// See listener.h.
#include "relay/api/listener.h"

#include <charconv>
#include <mutex>
#include <vector>

#include "lib/base/log_rate.h"
#include "lib/base/log_text.h"
#include "lib/http/server.h"
#include "lib/kube/base64.h"
#include "lib/kube/informer.h"
#include "relay/api/judge.h"
#include "relay/api/limits.h"
#include "relay/api/service.h"
#include "relay/api/trace_files.h"

namespace weft::relay_api {
namespace {

using kube::Json;

struct HostAndPort {
  std::string host;
  uint16_t port = 0;
};

Result<HostAndPort> ParseAddress(const std::string& address) {
  const size_t colon = address.rfind(':');
  HostAndPort parsed;
  const char* const end = address.data() + address.size();
  const char* const digits = colon == std::string::npos ? end : address.data() + colon + 1;
  const auto [read, error] = std::from_chars(digits, end, parsed.port);
  if (error != std::errc() || read != end) {
    return Fail(ErrorCode::kInvalid, address + ": not ADDRESS:PORT");
  }
  parsed.host = address.substr(0, colon);
  if (parsed.host.size() > 2 && parsed.host.starts_with('[') && parsed.host.ends_with(']')) {
    parsed.host = parsed.host.substr(1, parsed.host.size() - 2);
  }
  return parsed;
}

// Counts and logs the peers that the server refused before there was a request to be judged.
// Thread-safe.
class RefusedPeers {
 public:
  RefusedPeers(metrics::Registry& metrics, std::function<void(const std::string&)> log)
      : metrics_(metrics), log_(std::move(log)) {
    // All reasons are on the page from the start, so that the first refusal is an increase.
    for (const char* reason : http::kRefusedPeerReasons) {
      metrics_.Add(metrics::Id::kRelayApiRefused, {reason}, 0);
    }
  }

  void Note(const http::RefusedPeer& peer) {
    metrics_.Add(metrics::Id::kRelayApiRefused, {peer.reason});
    const std::lock_guard lock(mutex_);
    const auto left_out = lines_.Take("", LogRate::Clock::now());
    if (!left_out) return;
    log_("api: refused (" + std::string(peer.reason) + "): from " + ForLog(peer.address) + ": " +
         ForLog(peer.why) + *left_out);
  }

 private:
  metrics::Registry& metrics_;
  const std::function<void(const std::string&)> log_;
  std::mutex mutex_;
  LogRate lines_{kRefusedPeerLines, kRefusedPeerLinesAtOnce, /*most=*/1};
};

class HttpsListener : public Listener {
 public:
  HttpsListener(const Options& options, UniqueFd data_folder, const store::SafeReads& safe,
                kube::Client& client, const relay_rates::TraceRates& rates,
                metrics::Registry& metrics, std::function<void(const std::string&)> log)
      : log_(std::move(log)),
        refused_(metrics, log_),
        judge_(client, options.name_space),
        files_(std::move(data_folder)),
        service_(judge_, files_, safe, rates, metrics, log_, options.gate),
        gate_(options.gate) {}

  Status Serve(const Options& options, kube::Client& client) {
    WEFT_ASSIGN(const HostAndPort where, ParseAddress(options.address));
    auto server =
        http::Server::Start({.address = where.host,
                             .port = where.port,
                             .tls = true,
                             .max_body_bytes = 0,
                             .total_bytes = kApiBytes,
                             .threads = kApiThreads,
                             .is_urgent = {},
                             .on_refused = [this](const auto& peer) { refused_.Note(peer); }},
                            [this](const auto& request) { return service_.Answer(request); });
    if (!server) return std::unexpected(std::move(server.error()).Context(options.address));
    server_ = std::move(*server);
    address_ = options.address.substr(0, options.address.rfind(':')) + ":" +
               std::to_string(server_->port());
    secret_ = std::make_unique<kube::Informer>(
        client,
        kube::Address{.resource = kube::kSecrets,
                      .name_space = options.name_space,
                      .name = "",
                      .subresource = ""},
        kube::Selection{.fields = "metadata.name=" + options.secret, .labels = ""},
        kube::InformerHandlers{.on_list =
                                   [this](const std::vector<Json>& all) {
                                     for (const Json& object : all) UseSecret(object);
                                   },
                               .on_event =
                                   [this](const kube::WatchEvent& event) {
                                     if (event.type != kube::WatchType::kDeleted)
                                       UseSecret(event.object);
                                   },
                               .on_error =
                                   [this](const Error& error) {
                                     log_("api: certificate: " + ForLog(error.message));
                                   }});
    return {};
  }

  [[nodiscard]] std::string address() const override { return address_; }

 private:
  void UseSecret(const Json& secret) {
    const auto chain = DecodeBase64(kube::TextAt(secret, {"data", "tls.crt"}));
    const auto key = DecodeBase64(kube::TextAt(secret, {"data", "tls.key"}));
    if (!chain || !key) return log_("api: the certificate's Secret is not base64");
    if (const auto set = server_->SetCertificate({*chain, *key}); !set) {
      return log_("api: certificate: " + set.error().message);
    }
    if (gate_ != nullptr) {
      if (const auto set = gate_->SetCertificate(*chain, *key); !set) {
        return log_("ingest: certificate: " + set.error().message);
      }
    }
    log_("api: using the certificate of version " +
         ForLog(kube::TextAt(secret, {"metadata", "resourceVersion"})));
  }

  const std::function<void(const std::string&)> log_;
  RefusedPeers refused_;
  std::string address_;
  Judge judge_;
  TraceFiles files_;
  Service service_;
  relay_trust::Gate* const gate_;
  std::unique_ptr<http::Server> server_;
  std::unique_ptr<kube::Informer> secret_;  // last: its thread uses the others
};

}  // namespace

Result<std::unique_ptr<Listener>> Listener::Start(const Options& options, UniqueFd data_folder,
                                                  const store::SafeReads& safe,
                                                  kube::Client& client,
                                                  const relay_rates::TraceRates& rates,
                                                  metrics::Registry& metrics,
                                                  std::function<void(const std::string&)> log) {
  auto listener = std::make_unique<HttpsListener>(options, std::move(data_folder), safe, client,
                                                  rates, metrics, std::move(log));
  WEFT_TRY(listener->Serve(options, client));
  return listener;
}

}  // namespace weft::relay_api
