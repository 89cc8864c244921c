// SPDX-License-Identifier: Apache-2.0
// See connection.h.
#include "cli/kubectl/connection.h"

#include "lib/api/names.h"
#include "lib/kube/config.h"

namespace weft::kubectl {
namespace {

constexpr const char* kFieldManager = "kubectl-weft";

}  // namespace

Result<Connection> Connect(const ConnectionOptions& options) {
  const KubeconfigFiles files = FindKubeconfigFiles(options.kubeconfig);
  WEFT_ASSIGN(const Kubeconfig kubeconfig, LoadKubeconfig(files));
  Connection out;
  out.weft_namespace = options.weft_namespace;
  kube::TransportConfig config;
  if (kubeconfig.contexts.empty() && options.context.empty() && options.kubeconfig.empty()) {
    auto found = kube::FindCluster({});
    if (!found)
      return Fail(ErrorCode::kNotFound,
                  "there is no kubeconfig, and this is no pod: name one with --kubeconfig FILE, or "
                  "set KUBECONFIG");
    config = std::move(*found);
    config.headers = ImpersonationHeaders({}, options);
    out.name_space = kube::OwnNamespace().value_or("");
  } else {
    WEFT_ASSIGN(const ChosenContext chosen, ChooseContext(kubeconfig, options.context));
    WEFT_ASSIGN(config, MakeTransportConfig(chosen, options));
    out.name_space = chosen.name_space;
  }
  if (!options.name_space.empty()) out.name_space = options.name_space;
  if (out.name_space.empty()) out.name_space = "default";
  for (const std::string& name : {out.name_space, out.weft_namespace}) {
    if (const std::string why = api::CheckDnsLabel(name); !why.empty()) {
      std::string problem = "\"";
      problem.append(name).append("\" is no name of a namespace: ").append(why);
      return Fail(ErrorCode::kInvalid, problem);
    }
  }
  out.client = std::make_unique<kube::Client>(kube::MakeTransport(config), kFieldManager);
  return out;
}

}  // namespace weft::kubectl
