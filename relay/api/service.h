// SPDX-License-Identifier: Apache-2.0
// Answers the requests of docs/openapi/relay.yaml: parses, judges, limits, reads, and leaves one
// line in the log for each. Thread-safety: Answer may be called from several threads at once.
#ifndef WEFT_RELAY_API_SERVICE_H_
#define WEFT_RELAY_API_SERVICE_H_

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>

#include "lib/base/log_rate.h"
#include "lib/base/token_bucket.h"
#include "lib/http/server.h"
#include "lib/metrics/registry.h"
#include "lib/store/safe_reads.h"
#include "relay/api/judge.h"
#include "relay/api/limits.h"
#include "relay/api/shares.h"
#include "relay/api/trace_files.h"
#include "relay/rates/trace_rates.h"
#include "relay/trust/gate.h"

namespace weft::relay_api {

class Service {
 public:
  // All outlive the service, and the bodies of its answers. `log` gets lines without an end.
  // `gate`: makes tickets for agents; null: there are none. `now`: of the limits.
  Service(Judge& judge, TraceFiles& files, const store::SafeReads& safe,
          const relay_rates::TraceRates& rates, metrics::Registry& metrics,
          std::function<void(const std::string&)> log, const relay_trust::Gate* gate = nullptr,
          std::function<Clock::time_point()> now = Clock::now)
      : judge_(judge),
        files_(files),
        safe_(safe),
        rates_(rates),
        metrics_(metrics),
        log_(std::move(log)),
        gate_(gate),
        now_(std::move(now)) {}

  http::Response Answer(const http::Request& request);

 private:
  // An answer, its word in weft_relay_api_requests_total, and what the log says beside it.
  struct Outcome {
    http::Response response;
    const char* result = "ok";
    std::string who;
    std::string credential;  // that is proved; "": none
    std::string note;
  };
  class FileSource;
  class Download;

  Outcome Decide(const http::Request& request);
  Outcome Deliver(const http::Request& request, const Route& route, const Judgement& judgement);
  Outcome ListTraces(const Route& route, const Judgement& judgement);
  Outcome ListFiles(const http::Request& request, const Route& route);
  Outcome GetRates(const http::Request& request, const Route& route);
  static Outcome FailedList(const Error& error);
  static Outcome BadRequest(const Error& error);
  // A range of a file or archive that is shorter.
  static Outcome BeyondEnd(const char* what, uint64_t size);
  static Outcome TooManyDownloads();
  static Outcome TooManyReads();
  Outcome GetArchive(const http::Request& request, const Route& route,
                     const std::string& credential);
  Outcome GetFile(const http::Request& request, const Route& route, const std::string& credential);
  Outcome GetParts(const http::Request& request, const Route& route, const std::string& credential);
  Outcome GetTicket(const Route& route, const Judgement& judgement);
  // `peer`: an address, or "ADDRESS/NAMESPACE".
  bool TakePeer(const std::string& peer);
  bool TakeCredential(const std::string& credential);
  // Null: the credential has kMaxDownloads already.
  std::shared_ptr<Download> BeginDownload(const std::string& credential);
  void EndDownload(const std::string& credential);
  void Audit(const http::Request& request, const Outcome& outcome);

  Judge& judge_;
  TraceFiles& files_;
  const store::SafeReads& safe_;
  const relay_rates::TraceRates& rates_;
  metrics::Registry& metrics_;
  const std::function<void(const std::string&)> log_;
  const relay_trust::Gate* const gate_;
  const std::function<Clock::time_point()> now_;
  std::mutex mutex_;
  TokenBuckets peers_{kPeerRate, kPeerBurst, kMaxRated};
  TokenBuckets credentials_{kCredentialRate, kCredentialBurst, kMaxRated};
  std::map<std::string, int> downloads_;  // by credential
  Shares compressions_{kMaxCompressions, kMaxCompressionsOfNamespace};
  Shares long_reads_{kMaxLongReads, kMaxLongReadsOfNamespace};
  LogRate lines_{kAuditRate, kAuditBurst, kMaxRated};
};

}  // namespace weft::relay_api

#endif  // WEFT_RELAY_API_SERVICE_H_
