// SPDX-License-Identifier: Apache-2.0
// The node's counters per Trace for Prometheus: the families of lib/metrics/families.h that name a
// member of ipc::ChannelCounts. The agent's loop sets the sums; the server's threads collect them
// for scrapes. A Trace that ended keeps its counters as long as there is room. Thread-safety: any
// thread.
#ifndef WEFT_NODE_AGENT_AGENT_CLUSTER_METRICS_H_
#define WEFT_NODE_AGENT_AGENT_CLUSTER_METRICS_H_

#include <prometheus/collectable.h>
#include <prometheus/metric_family.h>

#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "lib/ipc/messages.h"

namespace weft::agent {

class Metrics final : public prometheus::Collectable {
 public:
  using TraceKey = std::pair<std::string, std::string>;  // namespace, trace
  using Sums = std::map<TraceKey, ipc::ChannelCounts>;

  void Set(Sums sums);
  // Whether this node can record its kernel; why not, by a condition's reason.
  void SetKernel(bool is_ready, std::string reason);
  // The kernel killed the consumer of this namespace for its memory.
  void CountOutOfMemory(const std::string& name_space);
  [[nodiscard]] std::vector<prometheus::MetricFamily> Collect() const override;

 private:
  mutable std::mutex mutex_;
  Sums sums_;
  bool kernel_is_ready_ = false;
  std::string kernel_reason_;
  std::map<std::string, uint64_t> out_of_memory_;  // by namespace
};

}  // namespace weft::agent

#endif  // WEFT_NODE_AGENT_AGENT_CLUSTER_METRICS_H_
