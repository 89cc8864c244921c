// SPDX-License-Identifier: Apache-2.0
// Files by request: a consumer cannot open any, the agent does it for it. Used by the service's thread;
// blocks until the answer is there. Other messages that arrive meanwhile wait in the agent link.
#ifndef WEFT_NODE_AGENT_CONSUMER_FILE_CLIENT_H_
#define WEFT_NODE_AGENT_CONSUMER_FILE_CLIENT_H_

#include <string>

#include "node-agent/consumer/agent_link.h"
#include "relay/store/store.h"

namespace weft::consumer {

class FileClient : public store::FileMaker {
 public:
  explicit FileClient(AgentLink& link) : link_(&link) {}
  // kTimeout: no agent answered; asked again not before kFileRetry.
  Result<UniqueFd> OpenFile(std::string_view relative_name) override;

 private:
  AgentLink* link_;
  uint64_t next_request_ = 1;
  uint64_t failed_at_ns_ = 0;
};

}  // namespace weft::consumer

#endif  // WEFT_NODE_AGENT_CONSUMER_FILE_CLIENT_H_
