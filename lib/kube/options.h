// SPDX-License-Identifier: Apache-2.0
// Command-line flags of every part that talks to the API server.
#ifndef WEFT_LIB_KUBE_OPTIONS_H_
#define WEFT_LIB_KUBE_OPTIONS_H_

#include <CLI/CLI.hpp>

#include "lib/kube/transport.h"

namespace weft::kube {

// `config` outlives `app`. Without flags, FindCluster takes what the kubelet gave the pod.
inline void AddOptions(CLI::App& app, TransportConfig& config) {
  app.add_option("--server", config.server,
                 "API server, https://host:port; default: that of this pod's cluster");
  app.add_option("--ca-file", config.ca_file, "CA certificates that verify the API server");
  app.add_option("--token-file", config.token_file, "file with the bearer token");
  app.add_option("--client-cert-file", config.client_cert_file, "client certificate");
  app.add_option("--client-key-file", config.client_key_file, "key of the client certificate");
}

}  // namespace weft::kube

#endif  // WEFT_LIB_KUBE_OPTIONS_H_
