// SPDX-License-Identifier: Apache-2.0
// Keeps the CA of this installation and the certificates of webhook and relay: creates them if they
// do not exist, renews them before they expire, and registers the CA with the API server. Used by
// one thread.
//
// There are three Secrets: the CA with its key, which only the controller reads, and the servers'
// certificates, one each. A ConfigMap has the CA's certificate for nodes, which connect to relays.
//
// Before a CA expires a new one replaces it. The Secret keeps the old certificate, and API server
// and nodes believe both, until the old one has expired. Servers get a certificate of the new CA
// once API servers and nodes have had time to hear of it.
#ifndef WEFT_CONTROLLER_CERTIFICATES_H_
#define WEFT_CONTROLLER_CERTIFICATES_H_

#include <chrono>
#include <string>
#include <vector>

#include "lib/http/certificates.h"
#include "lib/kube/client.h"
#include "lib/kube/time.h"

namespace weft::controller {

inline constexpr std::chrono::hours kAuthorityLifetime{24 * 3650};
inline constexpr std::chrono::hours kServerLifetime{24 * 90};
// Renewed so long before the end: a month of a broken controller harms nothing.
inline constexpr std::chrono::hours kRenewBefore{24 * 30};
inline constexpr std::chrono::hours kCheckInterval{1};
// Until API servers know a new CA.
inline constexpr std::chrono::minutes kSpreadTime{1};

class Certificates {
 public:
  struct Names {
    std::string name_space;  // weft's own
    std::string authority_secret = "weft-ca";
    std::string webhook_secret = "weft-webhook-tls";
    std::string webhook_service = "weft-webhook";
    std::string relay_secret = "weft-relay-tls";
    std::string relay_service = "weft-relay";
    std::string webhook_configuration = "weft-webhook";
    std::string relay_authority_map = "weft-relay-ca";  // what nodes read
  };

  Certificates(kube::Client& client, Names names) : client_(client), names_(std::move(names)) {}

  // Idempotent. Returns when to call it again.
  Result<std::chrono::milliseconds> Reconcile();

 private:
  // A Secret's content.
  struct Kept {
    http::KeyPair pair;
    std::string previous_pem;  // of a CA: the certificate of the one before; "": none
  };
  Result<Kept> Read(const std::string& secret);
  Status Write(const std::string& secret, const Kept& kept);
  Result<Kept> Authority(kube::WallTime now);
  // Makes a server's certificate if its Secret has none that is good. `is_news`: its clients do not
  // know the CA yet. Returns when to look again.
  Result<std::chrono::milliseconds> Serve(const std::string& secret,
                                          const std::vector<std::string>& hosts,
                                          const Kept& authority, bool is_news, kube::WallTime now);
  // Whether it did not know them yet.
  Result<bool> TellApiServer(const std::string& bundle_pem);
  // Whether nodes did not know them yet.
  Result<bool> TellNodes(const std::string& bundle_pem);

  kube::Client& client_;
  const Names names_;
};

}  // namespace weft::controller

#endif  // WEFT_CONTROLLER_CERTIFICATES_H_
