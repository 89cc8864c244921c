// SPDX-License-Identifier: Apache-2.0
// weft-relay: receives what nodes record, and stores it as CTF. SIGTERM: acknowledges what it has,
// and ends with everything on the disk.
#include <fcntl.h>
#include <sys/resource.h>

#include <CLI/CLI.hpp>
#include <csignal>
#include <cstdio>

#include "relay/ingest/archive.h"
#include "relay/ingest/http.h"
#include "relay/ingest/server.h"

namespace {

int Complain(const weft::Error& error) {
  std::fprintf(stderr, "weft-relay: %s\n", error.message.c_str());
  return 1;
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("Receives what nodes record, and stores it as CTF.", "weft-relay");
  std::string data_dir;
  std::string control = "0.0.0.0:4460";
  std::string data = "0.0.0.0:4461";
  std::string http = "0.0.0.0:4462";
  app.add_option("--data-dir", data_dir, "folder of the traces; it must exist")->required();
  app.add_option("--control", control, "ADDRESS:PORT of control connections")
      ->capture_default_str();
  app.add_option("--data", data, "ADDRESS:PORT of data connections")->capture_default_str();
  app.add_option("--http", http, "ADDRESS:PORT of /metrics and /healthz")->capture_default_str();
  CLI11_PARSE(app, argc, argv);

  std::signal(SIGPIPE, SIG_IGN);
  // Each stream needs a descriptor.
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) == 0) {
    limit.rlim_cur = limit.rlim_max;
    (void)::setrlimit(RLIMIT_NOFILE, &limit);
  }
  weft::UniqueFd folder(::open(data_dir.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!folder) return Complain(weft::FailErrno(data_dir).error());
  weft::store::DirectoryFileMaker maker(std::move(folder));
  weft::metrics::Registry metrics(weft::metrics::Part::kRelay);
  weft::ingest::DiskArchive archive(maker, metrics);
  auto server = weft::ingest::Server::Make(archive, metrics, control, data);
  if (!server) return Complain(server.error());
  auto web =
      weft::ingest::HttpServer::Start(http, {.metrics = [&metrics] { return metrics.Text(); },
                                             .healthy = [&server] { return (*server)->alive(); }});
  if (!web) return Complain(web.error());
  std::fprintf(stderr, "weft-relay: control %s data %s http %s\n",
               (*server)->control_address().c_str(), (*server)->data_address().c_str(),
               (*web)->address().c_str());
  const weft::Status ended = (*server)->Run();
  return ended ? 0 : Complain(ended.error());
}
