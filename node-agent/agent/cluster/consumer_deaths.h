// SPDX-License-Identifier: Apache-2.0
// Consumers of this node that the kernel killed for their memory, by namespace, as the statuses of
// the namespace's sessions report it for kConsumerTroubleSaid. A new agent begins without any. The
// agent's thread owns it.
#ifndef WEFT_NODE_AGENT_AGENT_CLUSTER_CONSUMER_DEATHS_H_
#define WEFT_NODE_AGENT_AGENT_CLUSTER_CONSUMER_DEATHS_H_

#include <chrono>
#include <cstdint>
#include <map>
#include <string>
#include <utility>

#include "node-agent/agent/base/limits.h"

namespace weft::agent {

class ConsumerDeaths {
 public:
  // `why` has the limit in it. Times are CLOCK_MONOTONIC.
  void Add(const std::string& name_space, std::string why, int64_t now_ns) {
    Death& death = deaths_[name_space];
    ++death.count;
    death.why = std::move(why);
    death.at_ns = now_ns;
  }

  // A condition's message; "": there was none lately.
  [[nodiscard]] std::string Describe(const std::string& name_space, int64_t now_ns) {
    const auto found = deaths_.find(name_space);
    if (found == deaths_.end()) return "";
    const Death& death = found->second;
    if (std::chrono::nanoseconds(now_ns - death.at_ns) >= kConsumerTroubleSaid) {
      deaths_.erase(found);
      return "";
    }
    return "the consumer of this namespace was killed (" + death.why + "), " +
           std::to_string(death.count) + (death.count == 1 ? " time" : " times") +
           "; the next one goes on where it was. Helps: fewer or smaller buffers, fewer Traces in "
           "the namespace, or a larger agent.consumer.memory in the values of weft's chart";
  }

 private:
  struct Death {
    uint64_t count = 0;
    std::string why;
    int64_t at_ns = 0;
  };
  std::map<std::string, Death> deaths_;
};

}  // namespace weft::agent

#endif  // WEFT_NODE_AGENT_AGENT_CLUSTER_CONSUMER_DEATHS_H_
