// SPDX-License-Identifier: Apache-2.0
// The API server's address and credentials: from flags, or from the pod's service account.
#ifndef WEFT_LIB_KUBE_CONFIG_H_
#define WEFT_LIB_KUBE_CONFIG_H_

#include <string>

#include "lib/base/result.h"
#include "lib/kube/transport.h"

namespace weft::kube {

// The folder in which the kubelet keeps a pod's token, CA and namespace.
inline constexpr const char* kServiceAccountFolder =
    "/var/run/secrets/kubernetes.io/serviceaccount";

// `given` as it is if it names a server; else the pod's own (KUBERNETES_SERVICE_HOST and _PORT,
// files of kServiceAccountFolder). kNotFound: neither.
Result<TransportConfig> FindCluster(const TransportConfig& given);

// The namespace of the pod that this runs in. kNotFound: in none.
Result<std::string> OwnNamespace();

// The pod's name, which is its host's name in its environment; outside of a pod `otherwise`.
std::string OwnPod(const std::string& otherwise);

}  // namespace weft::kube

#endif  // WEFT_LIB_KUBE_CONFIG_H_
