// SPDX-License-Identifier: Apache-2.0
// weft-webhook: the admission webhooks for pods and for Traces. Its certificate is in a Secret that
// the controller makes and renews; until there is one, it refuses connections, and pods are made
// without the library.
#include <spdlog/spdlog.h>

#include <CLI/CLI.hpp>

#include "lib/base/log_rate.h"
#include "lib/base/stop_signals.h"
#include "lib/http/health.h"
#include "lib/kube/base64.h"
#include "lib/kube/config.h"
#include "lib/kube/options.h"
#include "ust-injector/webhook/cluster_view.h"
#include "ust-injector/webhook/notices.h"
#include "ust-injector/webhook/service.h"

namespace {

using weft::webhook::Json;

struct Flags {
  weft::kube::TransportConfig cluster;
  std::uint16_t port = 8443;
  std::uint16_t health_port = 8080;
  std::string secret = "weft-webhook-tls";
  std::string name_space;
  std::size_t traces_per_namespace = SIZE_MAX;
};

// The API server gives up after `webhook.timeoutSeconds`, 2, and allows the Trace unchecked.
constexpr std::chrono::seconds kCountLimit{1};
constexpr double kFailedCountLines = 1;  // a second

void Log(const weft::Error& error) { spdlog::warn("{}", error.message); }

// Reviews of pods do not wait for those of Traces: a missing library costs more than a message in
// other words.
bool IsForPods(const std::string& path) { return path == weft::webhook::kMutatePath; }

// Takes the certificate out of its Secret.
void UseSecret(const Json& secret, weft::http::Server& server, std::atomic<bool>& ready) {
  const auto chain = weft::DecodeBase64(weft::kube::TextAt(secret, {"data", "tls.crt"}));
  const auto key = weft::DecodeBase64(weft::kube::TextAt(secret, {"data", "tls.key"}));
  if (!chain || !key) return spdlog::warn("the certificate's Secret is not base64");
  if (const auto set = server.SetCertificate({*chain, *key}); !set) return Log(set.error());
  ready = true;
  spdlog::info("using the certificate of version {}",
               weft::kube::TextAt(secret, {"metadata", "resourceVersion"}));
}

weft::Status Run(Flags flags) {
  if (flags.name_space.empty()) {
    WEFT_ASSIGN(flags.name_space, weft::kube::OwnNamespace());
  }
  WEFT_ASSIGN(const auto cluster, weft::kube::FindCluster(flags.cluster));
  weft::kube::Client client(weft::kube::MakeTransport(cluster), "weft-webhook");

  weft::metrics::Registry metrics(weft::metrics::Part::kWebhook);
  weft::webhook::ClusterView view(flags.name_space);
  weft::webhook::Notices notices(client, weft::kube::OwnPod("weft-webhook"), Log);
  weft::webhook::Service service(
      flags.name_space, [&](const std::string& name_space) { return view.Facts(name_space); },
      [&](const Json& object, const std::string& name_space, const auto& left_alone) {
        notices.Post(object, name_space, left_alone);
      },
      metrics,
      [&, lines = weft::LogRate(kFailedCountLines, kFailedCountLines, /*most=*/1)](
          const std::string& name_space) mutable {
        auto count =
            client.Count({.resource = weft::kube::kTraces, .name_space = name_space}, kCountLimit);
        const auto end = count ? std::nullopt : lines.Take("", weft::LogRate::Clock::now());
        if (end)
          spdlog::warn("a Trace of {} is allowed, and not counted: {}{}", name_space,
                       count.error().message, *end);
        return count;
      },
      flags.traces_per_namespace);
  WEFT_ASSIGN(const auto server,
              weft::http::Server::Start({.port = flags.port,
                                         .tls = true,
                                         .max_body_bytes = weft::webhook::kMaxReviewBytes,
                                         .is_urgent = IsForPods},
                                        [&](const auto& r) { return service.Answer(r); }));
  std::atomic<bool> certificate = false;
  const weft::http::Health health = {.alive = [] { return std::string(); },
                                     .ready = [&]() -> std::string {
                                       if (!certificate) return "no certificate yet";
                                       return view.is_complete()
                                                  ? ""
                                                  : "nodes, or the controller's library, are not "
                                                    "known yet";
                                     },
                                     .metrics = &metrics};
  WEFT_ASSIGN(const auto health_server, weft::http::ServeHealth(flags.health_port, health));

  const auto informers = weft::webhook::Feed(view, client, Log);
  const weft::kube::Informer secret(
      client, {.resource = weft::kube::kSecrets, .name_space = flags.name_space},
      {.fields = "metadata.name=" + flags.secret},
      {.on_list =
           [&](const std::vector<Json>& all) {
             for (const Json& object : all) UseSecret(object, *server, certificate);
           },
       .on_event =
           [&](const weft::kube::WatchEvent& event) {
             if (event.type != weft::kube::WatchType::kDeleted)
               UseSecret(event.object, *server, certificate);
           },
       .on_error = Log});
  spdlog::info("serving reviews on port {}, health on {}", server->port(), health_server->port());

  weft::WaitForStopSignal();
  return {};
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app(
      "Adds weft's library to new pods of namespaces that have it, and says what is wrong "
      "with Traces.");
  Flags flags;
  weft::kube::AddOptions(app, flags.cluster);
  app.add_option("--port", flags.port, "port for the API server (HTTPS)");
  app.add_option("--health-port", flags.health_port, "port of /healthz, /readyz, /metrics");
  app.add_option("--namespace", flags.name_space, "weft's own namespace; default: this pod's");
  app.add_option("--secret", flags.secret, "name of the Secret with the certificate");
  app.add_option("--traces-per-namespace", flags.traces_per_namespace,
                 "most Traces of one namespace; further ones are refused; default: no limit")
      ->check(CLI::PositiveNumber);
  CLI11_PARSE(app, argc, argv);

  weft::BlockStopSignals();
  if (const weft::Status status = Run(flags); !status) {
    spdlog::error("{}", status.error().message);
    return 1;
  }
  return 0;
}
