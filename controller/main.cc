// SPDX-License-Identifier: Apache-2.0
// weft-controller: reconciles Traces, delivers the library, makes certificates.
#include <spdlog/spdlog.h>

#include <unistd.h>

#include <CLI/CLI.hpp>
#include <atomic>
#include <csignal>
#include <optional>
#include <thread>

#include "controller/controller.h"
#include "controller/uninstall.h"
#include "lib/api/parse.h"
#include "lib/base/stop_signals.h"
#include "lib/http/health.h"
#include "lib/kube/config.h"
#include "lib/kube/lease.h"
#include "lib/kube/options.h"

namespace {

struct Flags {
  weft::kube::TransportConfig cluster;
  std::uint16_t health_port = 8080;
  std::string name_space;
  std::vector<std::string> libraries;
  weft::api::RelayEndpoints relay;
  std::string namespace_selector = "{}";
  std::size_t traces_per_namespace = SIZE_MAX;
  bool uninstall = false;
};

weft::Status Run(Flags flags) {
  if (flags.name_space.empty()) {
    WEFT_ASSIGN(flags.name_space, weft::kube::OwnNamespace());
  }
  WEFT_ASSIGN(const auto cluster, weft::kube::FindCluster(flags.cluster));
  WEFT_ASSIGN(auto library, weft::controller::LoadLibrary(flags.libraries));
  const auto served =
      weft::api::ParseLabelSelector("--namespace-selector", flags.namespace_selector);
  // An uninstallation attaches to no program, and must not fail for this.
  if (!served && !flags.uninstall)
    return weft::Fail(weft::ErrorCode::kInvalid, served.error().front().ToString() +
                                                     "; mend the chart's value "
                                                     "webhook.namespaceSelector");
  spdlog::info("delivering {}", library.name);
  weft::kube::Client client(weft::kube::MakeTransport(cluster), "weft-controller");
  if (flags.uninstall) WEFT_TRY(weft::controller::StopController(client, flags.name_space));

  weft::metrics::Registry metrics(weft::metrics::Part::kController);
  const auto warn = [](const weft::Error& error) { spdlog::warn("{}", error.message); };
  const std::string instance = weft::kube::OwnPod("weft-controller");
  weft::controller::Options options{
      .name_space = flags.name_space,
      .instance = instance,
      .relay = flags.relay,
      .library = std::move(library),
      .served_namespaces = served.value_or(weft::api::LabelSelector{}),
      .traces_per_namespace = flags.traces_per_namespace,
      .uninstalling = flags.uninstall};
  std::optional<weft::kube::Leadership> leadership;
  if (!flags.uninstall) {
    leadership.emplace(
        client,
        weft::kube::Lease::Names{
            .name_space = flags.name_space, .name = "weft-controller", .holder = instance},
        warn);
    options.leads = [&leadership] { return leadership->leads(); };
  }
  weft::controller::Controller controller(client, options, metrics, warn);
  if (flags.uninstall) {
    const std::jthread worker([&](const std::stop_token& stop) { controller.Run(stop); });
    return weft::controller::WaitUntilReleased(controller);
  }
  const weft::http::Health health = {.alive = [&] { return controller.Stuck(); },
                                     .ready = [&] { return controller.NotReady(); },
                                     .metrics = &metrics};
  WEFT_ASSIGN(const auto server, weft::http::ServeHealth(flags.health_port, health));
  spdlog::info("health on port {}", server->port());

  std::atomic<bool> has_lost = false;
  const std::jthread worker([&](const std::stop_token& stop) {
    controller.Run(stop);
    has_lost = !stop.stop_requested();
    if (has_lost) kill(getpid(), SIGTERM);
  });
  weft::WaitForStopSignal();
  if (has_lost)
    return weft::Fail(
        weft::ErrorCode::kTimeout,
        "another controller leads: the Lease weft-controller was not renewed in time");
  return {};
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("Reconciles Traces, delivers the library, makes certificates.");
  Flags flags;
  weft::kube::AddOptions(app, flags.cluster);
  app.add_option("--health-port", flags.health_port, "port of /healthz, /readyz, /metrics");
  app.add_option("--namespace", flags.name_space, "weft's own namespace; default: this pod's");
  app.add_option("--library", flags.libraries, "libweft.so of an architecture: ARCHITECTURE=FILE")
      ->required();
  app.add_option("--relay", flags.relay.name, "name of the relay's pod")->required();
  app.add_option("--relay-control", flags.relay.control, "HOST:PORT of control connections")
      ->required();
  app.add_option("--relay-data", flags.relay.data, "HOST:PORT of data connections")->required();
  app.add_option("--namespace-selector", flags.namespace_selector,
                 "namespaces whose running programs may get the library: a label selector in JSON");
  app.add_option("--traces-per-namespace", flags.traces_per_namespace,
                 "most Traces of one namespace; further ones are not recorded; default: no limit")
      ->check(CLI::PositiveNumber);
  app.add_flag("--uninstall", flags.uninstall,
               "stop the running controller, drain all Traces, remove their finalizers, and exit");
  CLI11_PARSE(app, argc, argv);

  weft::BlockStopSignals();
  if (const weft::Status status = Run(flags); !status) {
    spdlog::error("{}", status.error().message);
    return 1;
  }
  return 0;
}
