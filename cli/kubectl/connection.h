// SPDX-License-Identifier: Apache-2.0
// The API server that a kubeconfig names, reached as its user. Thread-safety: as kube::Client.
#ifndef WEFT_CLI_KUBECTL_CONNECTION_H_
#define WEFT_CLI_KUBECTL_CONNECTION_H_

#include <memory>
#include <string>

#include "cli/kubectl/transport_config.h"
#include "lib/base/result.h"
#include "lib/kube/client.h"

namespace weft::kubectl {

struct Connection {
  std::unique_ptr<kube::Client> client;
  std::string name_space;
  std::string weft_namespace;
};

// Reads files only; the server is first asked by a request. Without any kubeconfig: the API server
// of the pod that this runs in, as its service account.
Result<Connection> Connect(const ConnectionOptions& options);

}  // namespace weft::kubectl

#endif  // WEFT_CLI_KUBECTL_CONNECTION_H_
