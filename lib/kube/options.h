// SPDX-License-Identifier: Apache-2.0
// Flags that every part which talks to the API server has.
#ifndef WEFT_LIB_KUBE_OPTIONS_H_
#define WEFT_LIB_KUBE_OPTIONS_H_

#include <CLI/CLI.hpp>

#include "lib/kube/transport.h"

namespace weft::kube {

// `config` outlives `app`. Nothing given: the pod's own (FindCluster).
inline void AddOptions(CLI::App& app, TransportConfig& config) {
  app.add_option("--server", config.server,
                 "API server, https://host:port; absent: the one of the pod this runs in");
  app.add_option("--ca-file", config.ca_file, "certificates that the server's is signed by");
  app.add_option("--token-file", config.token_file, "bearer token");
  app.add_option("--client-cert-file", config.client_cert_file, "certificate to show the server");
  app.add_option("--client-key-file", config.client_key_file, "its key");
}

}  // namespace weft::kube

#endif  // WEFT_LIB_KUBE_OPTIONS_H_
