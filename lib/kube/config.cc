// SPDX-License-Identifier: Apache-2.0
// The pod's own API server.
#include "lib/kube/config.h"

#include <cstdlib>
#include <fstream>

namespace weft::kube {

Result<TransportConfig> FindCluster(const TransportConfig& given) {
  if (!given.server.empty()) return given;
  const char* host = std::getenv("KUBERNETES_SERVICE_HOST");
  const char* port = std::getenv("KUBERNETES_SERVICE_PORT");
  if (host == nullptr || port == nullptr || *host == '\0' || *port == '\0')
    return Fail(ErrorCode::kNotFound, "no API server is known: give --server, or run in a pod");
  std::string name = host;
  if (name.find(':') != std::string::npos) name = "[" + name + "]";
  const std::string folder = kServiceAccountFolder;
  return TransportConfig{.server = "https://" + name + ":" + port,
                         .ca_file = folder + "/ca.crt",
                         .token_file = folder + "/token"};
}

Result<std::string> OwnNamespace() {
  std::ifstream in(std::string(kServiceAccountFolder) + "/namespace");
  std::string name;
  if (!(in >> name)) return Fail(ErrorCode::kNotFound, "the namespace is not known: run in a pod");
  return name;
}

std::string OwnPod(const std::string& otherwise) {
  const char* name = std::getenv("HOSTNAME");
  return name != nullptr ? name : otherwise;
}

}  // namespace weft::kube
