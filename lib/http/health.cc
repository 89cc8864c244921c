// SPDX-License-Identifier: Apache-2.0
// Health and metrics.
#include "lib/http/health.h"

#include <prometheus/text_serializer.h>

namespace weft::http {
namespace {

Response Say(const Complaint& complaint) {
  const std::string wrong = complaint();
  return wrong.empty() ? Response{.body = "ok\n"} : Response{.status = 503, .body = wrong + "\n"};
}

}  // namespace

Response AnswerHealth(const Health& health, const Request& request) {
  if (request.method != "GET" && request.method != "HEAD")
    return {.status = 405, .body = "GET and HEAD only\n"};
  if (request.path == "/healthz") return Say(health.alive);
  if (request.path == "/readyz") return Say(health.ready);
  if (request.path != "/metrics") return {.status = 404, .body = "not found\n"};
  const auto families = health.metrics != nullptr ? health.metrics->Collect()
                                                  : std::vector<prometheus::MetricFamily>();
  return {.content_type = "text/plain; version=0.0.4; charset=utf-8",
          .body = prometheus::TextSerializer().Serialize(families)};
}

Result<std::unique_ptr<Server>> ServeHealth(std::uint16_t port, const Health& health) {
  return Server::Start(HealthOptions(port),
                       [&health](const Request& request) { return AnswerHealth(health, request); });
}

}  // namespace weft::http
