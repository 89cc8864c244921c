// SPDX-License-Identifier: Apache-2.0
// See connection.h.
#include "cli/kubectl/connection.h"

#include <utility>

#include "lib/api/names.h"
#include "lib/kube/config.h"

namespace weft::kubectl {
namespace {

constexpr const char* kFieldManager = "kubectl-weft";

// Adds to what failed at the network which server it was, and what to do.
class NamingTransport : public kube::Transport {
 public:
  NamingTransport(std::string server, std::unique_ptr<kube::Transport> transport)
      : server_(std::move(server)), transport_(std::move(transport)) {}

  kube::HttpReply Send(const kube::HttpRequest& request, const std::stop_token& stop) override {
    return Name(transport_->Send(request, stop));
  }
  kube::HttpReply Stream(const kube::HttpRequest& request, const std::stop_token& stop,
                         const kube::BytesHandler& on_bytes) override {
    return Name(transport_->Stream(request, stop, on_bytes));
  }

 private:
  [[nodiscard]] kube::HttpReply Name(kube::HttpReply reply) const {
    if (reply.failure == kube::TransportFailure::kConnection ||
        reply.failure == kube::TransportFailure::kTimeout)
      reply.problem +=
          "; the API server is " + server_ + ": kubectl cluster-info tells whether it answers";
    return reply;
  }

  const std::string server_;
  const std::unique_ptr<kube::Transport> transport_;
};

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
  auto transport = std::make_unique<NamingTransport>(config.server, kube::MakeTransport(config));
  out.client = std::make_unique<kube::Client>(std::move(transport), kFieldManager);
  return out;
}

}  // namespace weft::kubectl
