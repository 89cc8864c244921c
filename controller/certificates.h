// SPDX-License-Identifier: Apache-2.0
// Keeps the CA of this installation and the webhook's certificate: creates them if they do not
// exist, renews them before they expire, and registers the CA with the API server. Used by one
// thread.
// There are two Secrets: the CA with its key, which only the controller reads, and the webhook's
// certificate. A new CA is created only if none exists or the old one expires. Rotation with the
// old and the new CA side by side does not exist yet, so kAuthorityLifetime is long.
#ifndef WEFT_CONTROLLER_CERTIFICATES_H_
#define WEFT_CONTROLLER_CERTIFICATES_H_

#include <chrono>
#include <string>

#include "lib/http/certificates.h"
#include "lib/kube/client.h"
#include "lib/kube/time.h"

namespace weft::controller {

inline constexpr std::chrono::hours kAuthorityLifetime{24 * 3650};
inline constexpr std::chrono::hours kServerLifetime{24 * 90};
// Renewed so long before the end: a month of a broken controller harms nothing.
inline constexpr std::chrono::hours kRenewBefore{24 * 30};
inline constexpr std::chrono::hours kCheckInterval{1};

class Certificates {
 public:
  struct Names {
    std::string name_space;  // weft's own
    std::string authority_secret = "weft-ca";
    std::string webhook_secret = "weft-webhook-tls";
    std::string webhook_service = "weft-webhook";
    std::string webhook_configuration = "weft-webhook";
  };

  Certificates(kube::Client& client, Names names) : client_(client), names_(std::move(names)) {}

  // Idempotent; to be called at the start and every kCheckInterval.
  Status Reconcile();

 private:
  Result<http::KeyPair> Read(const std::string& secret);
  Status Write(const std::string& secret, const http::KeyPair& pair);
  Result<http::KeyPair> Authority(kube::WallTime now);
  Status TellApiServer(const std::string& authority_pem);

  kube::Client& client_;
  const Names names_;
};

}  // namespace weft::controller

#endif  // WEFT_CONTROLLER_CERTIFICATES_H_
