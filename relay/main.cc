// SPDX-License-Identifier: Apache-2.0
// weft-relay: receives what nodes record, stores it as CTF, and gives it to its tenants. SIGTERM:
// acknowledges what it has, and ends with everything on the disk.
#include <fcntl.h>

#include <CLI/CLI.hpp>
#include <csignal>
#include <cstdio>
#include <optional>

#include "lib/base/open_file_limit.h"
#include "lib/kube/config.h"
#include "lib/kube/options.h"
#include "lib/store/safe_reads.h"
#include "relay/api/listener.h"
#include "relay/ingest/archive.h"
#include "relay/ingest/http.h"
#include "relay/ingest/server.h"
#include "relay/rates/trace_rates.h"

namespace {

void Log(const std::string& line) { std::fprintf(stderr, "weft-relay: %s\n", line.c_str()); }

struct Flags {
  std::string data_dir;
  std::string control = "0.0.0.0:4460";
  std::string data = "0.0.0.0:4461";
  std::string http = "0.0.0.0:4462";
  std::string api;  // "": none
  std::string name_space;
  weft::kube::TransportConfig cluster;
};

weft::Result<weft::UniqueFd> OpenFolder(const std::string& path) {
  weft::UniqueFd folder(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!folder) return weft::FailErrno(path);
  return folder;
}

// The HTTPS API, with the client of the API server that it asks.
struct Api {
  std::optional<weft::kube::Client> client;
  std::unique_ptr<weft::relay_api::Listener> listener;
};

weft::Status StartApi(const Flags& flags, const weft::store::SafeReads& safe,
                      weft::metrics::Registry& metrics, const weft::relay_rates::TraceRates& rates,
                      Api& api) {
  WEFT_ASSIGN(const auto cluster, weft::kube::FindCluster(flags.cluster));
  weft::relay_api::Listener::Options options{.address = flags.api, .name_space = flags.name_space};
  if (options.name_space.empty()) {
    WEFT_ASSIGN(options.name_space, weft::kube::OwnNamespace());
  }
  WEFT_ASSIGN(weft::UniqueFd folder, OpenFolder(flags.data_dir));
  api.client.emplace(weft::kube::MakeTransport(cluster), "weft-relay");
  WEFT_ASSIGN(api.listener, weft::relay_api::Listener::Start(options, std::move(folder), safe,
                                                             *api.client, rates, metrics, Log));
  Log("api " + api.listener->address());
  return {};
}

weft::Status Run(const Flags& flags) {
  WEFT_ASSIGN(weft::UniqueFd folder, OpenFolder(flags.data_dir));
  weft::store::DirectoryFileMaker maker(std::move(folder));
  weft::metrics::Registry metrics(weft::metrics::Part::kRelay);
  weft::store::SafeReads safe;
  weft::relay_rates::TraceRates rates;
  weft::ingest::DiskArchive archive(maker, safe, metrics, rates);
  WEFT_ASSIGN(const auto server,
              weft::ingest::Server::Make(archive, metrics, flags.control, flags.data));
  WEFT_ASSIGN(const auto web, weft::ingest::HttpServer::Start(
                                  flags.http, {.metrics = [&metrics] { return metrics.Text(); },
                                               .healthy = [&server] { return server->alive(); }}));
  Log("control " + server->control_address() + " data " + server->data_address() + " http " +
      web->address());
  Api api;
  if (!flags.api.empty()) WEFT_TRY(StartApi(flags, safe, metrics, rates, api));
  return server->Run();
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("Receives what nodes record, stores it as CTF, and gives it to its tenants.",
               "weft-relay");
  Flags flags;
  app.add_option("--data-dir", flags.data_dir, "folder of the traces; it must exist")->required();
  app.add_option("--control", flags.control, "ADDRESS:PORT of control connections")
      ->capture_default_str();
  app.add_option("--data", flags.data, "ADDRESS:PORT of data connections")->capture_default_str();
  app.add_option("--http", flags.http, "ADDRESS:PORT of /metrics and /healthz")
      ->capture_default_str();
  app.add_option("--api", flags.api,
                 "ADDRESS:PORT of the HTTPS API; default: none. It needs a cluster");
  app.add_option("--namespace", flags.name_space, "weft's own namespace; default: this pod's");
  weft::kube::AddOptions(app, flags.cluster);
  CLI11_PARSE(app, argc, argv);

  std::signal(SIGPIPE, SIG_IGN);
  weft::RaiseOpenFileLimit();
  if (const weft::Status ended = Run(flags); !ended) {
    Log(ended.error().message);
    return 1;
  }
  return 0;
}
