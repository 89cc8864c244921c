// SPDX-License-Identifier: Apache-2.0
// How the API server of a kubeconfig's context is reached: what lib/kube's transport is told.
// Thread-safety: pure functions; they read the environment and files.
#ifndef WEFT_CLI_KUBECTL_TRANSPORT_CONFIG_H_
#define WEFT_CLI_KUBECTL_TRANSPORT_CONFIG_H_

#include <string>
#include <vector>

#include "cli/kubectl/kubeconfig.h"
#include "lib/base/result.h"
#include "lib/kube/transport.h"

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

// Headers for acting as another user: those of the flags, else those of the kubeconfig.
kube::Headers ImpersonationHeaders(const UserEntry& user, const ConnectionOptions& options);

// The transport for a context. kUnsupported: credentials that cannot be used, with what to do.
Result<kube::TransportConfig> MakeTransportConfig(const ChosenContext& chosen,
                                                  const ConnectionOptions& options);

// The proxy that HTTPS_PROXY and NO_PROXY name for a server; "": none.
std::string ProxyOfEnvironment(const std::string& server);

}  // namespace weft::kubectl

#endif  // WEFT_CLI_KUBECTL_TRANSPORT_CONFIG_H_
