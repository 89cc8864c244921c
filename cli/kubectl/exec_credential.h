// SPDX-License-Identifier: Apache-2.0
// Credentials that a program prints: the `exec` of a kubeconfig's user, of the API
// client.authentication.k8s.io/v1
// (kubernetes.io/docs/reference/config-api/client-authentication.v1).
#ifndef WEFT_CLI_KUBECTL_EXEC_CREDENTIAL_H_
#define WEFT_CLI_KUBECTL_EXEC_CREDENTIAL_H_

#include <mutex>
#include <optional>
#include <string>
#include <string_view>

#include "cli/kubectl/kubeconfig.h"
#include "lib/base/result.h"
#include "lib/kube/time.h"
#include "lib/kube/transport.h"

namespace weft::kubectl {

struct ExecAnswer {
  kube::Credentials credentials;
  std::optional<kube::WallTime> expires;
};

// Parses what the program printed. kCorrupt: it is no ExecCredential with a token or a certificate.
Result<ExecAnswer> ParseExecCredential(std::string_view text);

// Runs the program when credentials are needed and the last ones have expired; they are kept in
// this object only. Thread-safety: all functions.
class ExecCredentials {
 public:
  ExecCredentials(ExecEntry exec, ClusterEntry cluster)
      : exec_(std::move(exec)), cluster_(std::move(cluster)) {}

  // Credentials, or `problem`.
  kube::Credentials Get();

 private:
  [[nodiscard]] Result<ExecAnswer> Run() const;

  const ExecEntry exec_;
  const ClusterEntry cluster_;
  std::mutex mutex_;
  std::optional<ExecAnswer> last_;
};

}  // namespace weft::kubectl

#endif  // WEFT_CLI_KUBECTL_EXEC_CREDENTIAL_H_
