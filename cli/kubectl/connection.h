// SPDX-License-Identifier: Apache-2.0
// The API server that a kubeconfig names, reached as its user. Thread-safety: as kube::Client.
#ifndef WEFT_CLI_KUBECTL_CONNECTION_H_
#define WEFT_CLI_KUBECTL_CONNECTION_H_

#include <memory>
#include <string>
#include <vector>

#include "cli/kubectl/kubeconfig.h"
#include "lib/base/result.h"
#include "lib/kube/client.h"

namespace weft::kubectl {

// Flags, named as kubectl's are. "": not given.
struct ConnectionOptions {
  std::string kubeconfig;
  std::string context;
  std::string name_space;
  std::string as;
  std::vector<std::string> as_groups;
  std::string weft_namespace = "weft";
};

struct Connection {
  std::unique_ptr<kube::Client> client;
  std::string name_space;
  std::string weft_namespace;
};

// Reads files only; the server is first asked by a request. Without any kubeconfig: the API server
// of the pod that this runs in, as its service account.
Result<Connection> Connect(const ConnectionOptions& options);

// The transport for a context. kUnsupported: credentials that cannot be used, with what to do.
Result<kube::TransportConfig> MakeTransportConfig(const ChosenContext& chosen,
                                                  const ConnectionOptions& options);

// The proxy that HTTPS_PROXY and NO_PROXY name for a server; "": none.
std::string ProxyOfEnvironment(const std::string& server);

}  // namespace weft::kubectl

#endif  // WEFT_CLI_KUBECTL_CONNECTION_H_
