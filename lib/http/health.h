// SPDX-License-Identifier: Apache-2.0
// Answers what the kubelet and Prometheus ask of a process: /healthz, /readyz, /metrics.
// Thread-safety: AnswerHealth may run on several threads at once.
#ifndef WEFT_LIB_HTTP_HEALTH_H_
#define WEFT_LIB_HTTP_HEALTH_H_

#include <prometheus/collectable.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "lib/http/server.h"

namespace weft::http {

// What is wrong, "": nothing. Called for each question.
using Complaint = std::function<std::string()>;

struct Health {
  Complaint alive;                                   // a complaint: restart it
  Complaint ready;                                   // a complaint: do not send it anything yet
  const prometheus::Collectable* metrics = nullptr;  // null: there are none
};

// 404 for other paths.
Response AnswerHealth(const Health& health, const Request& request);

// Answers with AnswerHealth at this port, until the server goes. `health` outlives it.
Result<std::unique_ptr<Server>> ServeHealth(std::uint16_t port, const Health& health);

}  // namespace weft::http

#endif  // WEFT_LIB_HTTP_HEALTH_H_
