// SPDX-License-Identifier: Apache-2.0
// weft-relay: receives what nodes record, stores it as CTF, and gives it to its tenants. SIGTERM:
// acknowledges what it has, and ends with everything on the disk.
#include <fcntl.h>
#include <sys/statvfs.h>

#include <CLI/CLI.hpp>
#include <chrono>
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
#include "relay/ingest/retention.h"
#include "relay/ingest/server.h"
#include "relay/ingest/storage_flags.h"
#include "relay/rates/trace_rates.h"
#include "relay/status/storage_status.h"
#include "relay/trust/gate.h"

namespace {

void Log(const std::string& line) { std::fprintf(stderr, "weft-relay: %s\n", line.c_str()); }

struct Flags {
  std::string data_dir;
  std::string control = "0.0.0.0:4460";
  std::string data = "0.0.0.0:4461";
  std::string http = "0.0.0.0:4462";
  std::string api;  // "": none
  bool plain_nodes = false;
  std::string name_space;
  weft::ingest::StorageFlags storage;
  weft::kube::TransportConfig cluster;
};

weft::Result<weft::UniqueFd> OpenFolder(const std::string& path) {
  weft::UniqueFd folder(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!folder) return weft::FailErrno(path);
  return folder;
}

// What a relay in a cluster has besides: a client of the API server, the gate for nodes (none with
// --plain-nodes), and the HTTPS API, whose certificate the gate uses, too. Each uses those above
// it.
struct Cluster {
  std::optional<weft::kube::Client> client;
  std::optional<weft::relay_trust::Gate> gate;
  std::unique_ptr<weft::relay_api::Listener> api;

  [[nodiscard]] weft::relay_trust::Gate* gate_or_null() { return gate ? &*gate : nullptr; }
};

weft::Status JoinCluster(const Flags& flags, const weft::store::SafeReads& safe,
                         weft::metrics::Registry& metrics,
                         const weft::relay_rates::TraceRates& rates, Cluster& cluster) {
  WEFT_ASSIGN(const auto config, weft::kube::FindCluster(flags.cluster));
  WEFT_ASSIGN(weft::UniqueFd folder, OpenFolder(flags.data_dir));
  cluster.client.emplace(weft::kube::MakeTransport(config), "weft-relay");
  weft::relay_api::Listener::Options options{
      .address = flags.api, .name_space = flags.name_space, .gate = cluster.gate_or_null()};
  if (options.name_space.empty()) {
    WEFT_ASSIGN(options.name_space, weft::kube::OwnNamespace());
  }
  WEFT_ASSIGN(cluster.api, weft::relay_api::Listener::Start(options, std::move(folder), safe,
                                                            *cluster.client, rates, metrics, Log));
  if (cluster.gate) cluster.gate->Watch(*cluster.client, Log);
  Log("api " + cluster.api->address());
  return {};
}

// Returns the free bytes of the volume with this folder. If they are not known, nothing is removed
// for them.
uint64_t FreeBytes(int folder) {
  struct statvfs volume{};
  if (::fstatvfs(folder, &volume) != 0) return UINT64_MAX;
  return uint64_t{volume.f_bavail} * volume.f_frsize;
}

// Tells the time by a clock that goes on from the system's time at its making, whatever that is set
// to later: events do not grow old at once.
auto SteadyTime() {
  return [wall = std::chrono::system_clock::now(), steady = std::chrono::steady_clock::now()] {
    return wall + (std::chrono::steady_clock::now() - steady);
  };
}

weft::Status Run(const Flags& flags) {
  WEFT_ASSIGN(const weft::ingest::StorageLimits limits, weft::ingest::ParseStorage(flags.storage));
  WEFT_ASSIGN(weft::UniqueFd folder, OpenFolder(flags.data_dir));
  const int volume = folder.get();
  weft::store::DirectoryFileMaker maker(std::move(folder));
  weft::metrics::Registry metrics(weft::metrics::Part::kRelay);
  weft::ingest::Retention retention(
      maker, metrics, limits,
      {.now = SteadyTime(), .free_bytes = [volume] { return FreeBytes(volume); }});
  WEFT_TRY(retention.Scan());
  weft::store::SafeReads safe;
  weft::relay_rates::TraceRates rates;
  Cluster cluster;
  if (!flags.api.empty() && !flags.plain_nodes) {
    WEFT_ASSIGN(auto tickets, weft::relay_trust::TicketBook::Make());
    cluster.gate.emplace(std::move(tickets));
  }
  weft::ingest::DiskArchive archive(
      maker, safe, metrics, rates, retention,
      [gate = cluster.gate_or_null()](const weft::stream::Hello& hello) {
        const auto storage =
            gate == nullptr ? weft::relay_trust::TraceStorage() : gate->sessions().StorageOf(hello);
        return weft::ingest::TraceLimits{.bytes = storage.bytes, .age = storage.age};
      });
  WEFT_ASSIGN(const auto server,
              weft::ingest::Server::Make(
                  archive, metrics,
                  {.control = flags.control, .data = flags.data, .gate = cluster.gate_or_null()}));
  WEFT_ASSIGN(const auto web, weft::ingest::HttpServer::Start(
                                  flags.http, {.metrics = [&metrics] { return metrics.Text(); },
                                               .healthy = [&server] { return server->alive(); }}));
  Log("control " + server->control_address() + " data " + server->data_address() + " http " +
      web->address());
  if (!cluster.gate) Log("nodes need no TLS and no tickets: do not expose the ports for them");
  if (!flags.api.empty()) WEFT_TRY(JoinCluster(flags, safe, metrics, rates, cluster));
  std::optional<weft::relay_status::StorageStatus> status;
  if (cluster.client) status.emplace(*cluster.client, retention, Log);
  return server->Run();
}

void AddStorage(CLI::App& app, weft::ingest::StorageFlags& flags) {
  const auto add = [&app](const char* name, std::string& value, const char* help) {
    app.add_option(name, value, help)->capture_default_str();
  };
  add("--chunk-size", flags.chunk_size, "size of the files into which a stream is written");
  add("--chunk-time", flags.chunk_time, "longest time that one of them covers; 0s: any");
  add("--namespace-quota", flags.namespace_quota,
      "most bytes that are kept of a namespace; then its oldest events go; 0: any");
  add("--trace-quota", flags.trace_quota, "most bytes that are kept of a Trace; 0: any");
  add("--max-age", flags.max_age, "events older than this are removed; 0s: none");
  add("--min-free", flags.min_free,
      "bytes of the volume that stay free: for them, the oldest events of the namespace with the "
      "most bytes go; 0: none");
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
                 "ADDRESS:PORT of the HTTPS API; default: none. It needs a cluster. With it, nodes "
                 "need TLS and a ticket");
  app.add_flag("--plain-nodes", flags.plain_nodes,
               "with --api: nodes need no TLS and no tickets, as without --api; for tests");
  app.add_option("--namespace", flags.name_space, "weft's own namespace; default: this pod's");
  AddStorage(app, flags.storage);
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
