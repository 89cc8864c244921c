// SPDX-License-Identifier: Apache-2.0
// The agent's record of one pod of its node. Thread-safety: plain values, pure functions.
#ifndef WEFT_NODE_AGENT_AGENT_CLUSTER_POD_H_
#define WEFT_NODE_AGENT_AGENT_CLUSTER_POD_H_

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "lib/kube/json.h"

namespace weft::agent {

struct PodFacts {
  std::string uid, name_space, name;
  std::map<std::string, std::string> labels;
  std::vector<std::string> containers;  // that have the library: names
  // Containers that were made without it: name -> why it is not loaded into their processes; "": it
  // may be.
  std::map<std::string, std::string> bare;
  std::map<std::string, std::string> ids;     // of containers that ran, as in their cgroups -> name
  std::set<std::string> running;              // names of containers that run now
  std::map<std::string, std::string> images;  // of containers that ran: name -> its image's digest
  // LD_PRELOAD that a container's image sets, and weft's replaces (image_preload.h): name -> value
  std::map<std::string, std::string> replaced_preloads;
  std::map<std::string, uint64_t> memory_limits;  // of containers, bytes
  std::string waiting;   // why a container has not started: "ImagePullBackOff"; "": none waits
  bool is_over = false;  // Succeeded or Failed
  bool operator==(const PodFacts&) const = default;
};

// The agent's name for a container.
std::string ContainerKey(std::string pod_uid, const std::string& container);

// Returns the bytes of a quantity of Kubernetes, "16Mi", "1.5G" or "1e6"; 0: it is none.
uint64_t ReadQuantity(const std::string& text);

// `pod`: as the API server has it.
PodFacts ReadPod(const kube::Json& pod);

}  // namespace weft::agent

#endif  // WEFT_NODE_AGENT_AGENT_CLUSTER_POD_H_
