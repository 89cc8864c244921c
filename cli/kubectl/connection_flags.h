// SPDX-License-Identifier: Apache-2.0
// The flags of the connection, which are kubectl's: of all commands, and of completion, which reads
// them from an unfinished command line.
#ifndef WEFT_CLI_KUBECTL_CONNECTION_FLAGS_H_
#define WEFT_CLI_KUBECTL_CONNECTION_FLAGS_H_

#include <CLI/CLI.hpp>

#include "cli/kubectl/transport_config.h"

namespace weft::kubectl {

// `options` outlives the parsing.
inline void AddConnectionFlags(CLI::App& app, ConnectionOptions& options) {
  app.add_option("--kubeconfig", options.kubeconfig,
                 "kubeconfig file; default: those of KUBECONFIG, else ~/.kube/config");
  app.add_option("--context", options.context, "context of the kubeconfig");
  app.add_option("-n,--namespace", options.name_space, "namespace; default: the context's");
  app.add_option("--as", options.as, "user to act as");
  app.add_option("--as-group", options.as_groups, "group to act as; may be repeated");
  app.add_option("--weft-namespace", options.weft_namespace, "namespace in which weft is installed")
      ->capture_default_str();
}

}  // namespace weft::kubectl

#endif  // WEFT_CLI_KUBECTL_CONNECTION_FLAGS_H_
