// SPDX-License-Identifier: Apache-2.0
// The /metrics pages of an agent and of a relay with known counts of two Traces, on loopback, from
// the code that serves them in a cluster. The relay stored what the agent's consumers delivered and
// got their reports, as every relay does. Prints "agent PORT relay PORT"; ends when stdin ends.
#include <cstdio>

#include "lib/base/uuid.h"
#include "lib/ctf/packet_writer.h"
#include "lib/ctf/test_trace.h"
#include "lib/http/health.h"
#include "node-agent/agent/cluster/metrics.h"
#include "relay/ingest/archive.h"
#include "relay/ingest/http.h"

#include <fcntl.h>

namespace weft {
namespace {

struct Example {
  const char* trace;
  ipc::ChannelCounts counts;
};

std::vector<Example> Examples() {
  return {{"orders",
           {.recorded = 1000,
            .delivered = 970,
            .overwritten = 10,
            .discarded = {{"full", 120}, {"too_large", 3}},
            .lost = {{"consumer/corrupt", 15}, {"relay/unreachable", 5}}}},
          {"payments",
           {.recorded = 50,
            .delivered = 50,
            .discarded = {{"memory", 7}},
            .tail_unknown = 2,
            .missed_anywhere = 9}}};
}

// Sends the messages of a node with these counts to a relay: one packet with the delivered events,
// and the report.
Status Deliver(const Example& example, uint8_t number, ingest::DiskArchive& archive) {
  const Uuid uuid{number};
  WEFT_ASSIGN(const auto trace, archive.OpenTrace({.node = "n",
                                                   .kubernetes_namespace = "shop",
                                                   .trace = example.trace,
                                                   .trace_uid = "",
                                                   .ticket = ""},
                                                  {.trace = 1,
                                                   .pod = "pod",
                                                   .pod_uid = "",
                                                   .container = "app",
                                                   .uuid = FormatUuid(uuid),
                                                   .path = "ust"}));
  WEFT_ASSIGN(const auto stream,
              archive.OpenStream(trace.key, {.trace = 1, .stream = 1, .channel = "user"}));
  ctf::PacketWriter writer({.trace_uuid = uuid});
  WEFT_TRY(archive.StorePacket(
      stream.handle,
      {.stream_handle = stream.handle, .events = static_cast<uint32_t>(example.counts.delivered)},
      writer.Finish(0, 100)));
  archive.Report(trace.key,
                 {.trace = 1, .discarded = example.counts.discarded, .lost = example.counts.lost});
  return {};
}

Status Run() {
  agent::Metrics agent;
  agent::Metrics::Sums sums;
  ctf::TempFolder folder;
  store::DirectoryFileMaker maker(UniqueFd(::open(folder.path().c_str(), O_DIRECTORY | O_RDONLY)));
  metrics::Registry relay(metrics::Part::kRelay);
  store::SafeReads safe;
  relay_rates::TraceRates rates;
  ingest::Retention retention(maker, relay, {});
  ingest::DiskArchive archive(maker, safe, relay, rates, retention);
  uint8_t number = 0;
  for (const Example& example : Examples()) {
    sums[{"shop", example.trace}] = example.counts;
    WEFT_TRY(Deliver(example, ++number, archive));
  }
  agent.Set(std::move(sums));
  agent.SetKernel(true, "Loaded");

  const auto fine = [] { return std::string(); };
  const http::Health health = {.alive = fine, .ready = fine, .metrics = &agent};
  http::Server::Options options = http::HealthOptions(0);
  options.address = "127.0.0.1";
  WEFT_ASSIGN(const auto agent_server, http::Server::Start(options, [&](const auto& request) {
                return http::AnswerHealth(health, request);
              }));
  WEFT_ASSIGN(const auto relay_server,
              ingest::HttpServer::Start("127.0.0.1:0", {.metrics = [&] { return relay.Text(); },
                                                        .healthy = [] { return true; }}));
  const std::string relay_address = relay_server->address();
  std::printf("agent %d relay %s\n", agent_server->port(),
              relay_address.substr(relay_address.rfind(':') + 1).c_str());
  std::fflush(stdout);
  while (std::getchar() != EOF) {
  }
  return {};
}

}  // namespace
}  // namespace weft

int main() {
  const weft::Status ended = weft::Run();
  if (!ended) std::fprintf(stderr, "exporters: %s\n", ended.error().message.c_str());
  return ended ? 0 : 1;
}
