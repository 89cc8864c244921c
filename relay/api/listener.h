// SPDX-License-Identifier: Apache-2.0
// The relay's HTTPS listener: Service on lib/http's server, with the certificate of a Secret, which
// the controller makes and renews. Until there is one, it closes connections. Asks one API server.
// Thread-safety: its functions are for one thread.
#ifndef WEFT_RELAY_API_LISTENER_H_
#define WEFT_RELAY_API_LISTENER_H_

#include <functional>
#include <memory>
#include <string>

#include "lib/base/result.h"
#include "lib/base/unique_fd.h"
#include "lib/kube/client.h"
#include "lib/metrics/registry.h"
#include "lib/store/safe_reads.h"
#include "relay/rates/trace_rates.h"
#include "relay/trust/gate.h"

namespace weft::relay_api {

class Listener {
 public:
  struct Options {
    std::string address;     // "ADDRESS:PORT", "[ADDRESS]:PORT"; port 0: any
    std::string name_space;  // weft's own
    std::string secret = "weft-relay-tls";
    relay_trust::Gate* gate = nullptr;  // outlives the listener; gets the certificate, too
  };
  // `safe`, `client`, `rates` and `metrics` outlive it. `log` gets lines without an end, from any
  // thread. kInvalid: no address; kIo: taken.
  static Result<std::unique_ptr<Listener>> Start(const Options& options, UniqueFd data_folder,
                                                 const store::SafeReads& safe, kube::Client& client,
                                                 const relay_rates::TraceRates& rates,
                                                 metrics::Registry& metrics,
                                                 std::function<void(const std::string&)> log);
  // Ends its threads.
  virtual ~Listener() = default;

  [[nodiscard]] virtual std::string address() const = 0;
};

}  // namespace weft::relay_api

#endif  // WEFT_RELAY_API_LISTENER_H_
