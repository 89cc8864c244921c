// SPDX-License-Identifier: Apache-2.0
// weft's volume of a pod, from the node's side: the folder that containers see as /weft. Control
// files and the doorbell stand in its root, beside the links that the kubelet makes for a
// ConfigMap's keys.
#ifndef WEFT_NODE_AGENT_AGENT_CLUSTER_VOLUME_H_
#define WEFT_NODE_AGENT_AGENT_CLUSTER_VOLUME_H_

#include <string>

#include "lib/base/result.h"
#include "lib/base/unique_fd.h"

namespace weft::agent {

// An O_PATH descriptor of KUBELET_DIR/pods/UID/volumes/kubernetes.io~configmap/weft. Below the
// pod's folder no link is followed and nothing leads out of it. kNotFound: the kubelet has not made
// it yet.
Result<UniqueFd> OpenVolume(const std::string& kubelet_dir, const std::string& pod_uid);

// The folder's name for calls that take a path: short enough for a socket.
std::string PathOf(const UniqueFd& folder);

}  // namespace weft::agent

#endif  // WEFT_NODE_AGENT_AGENT_CLUSTER_VOLUME_H_
