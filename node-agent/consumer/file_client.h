// SPDX-License-Identifier: Apache-2.0
// Gets files from the agent, since a consumer cannot open any. Blocks until the answer is there;
// other messages that arrive meanwhile wait in the agent link. Used by the service's thread.
#ifndef WEFT_NODE_AGENT_CONSUMER_FILE_CLIENT_H_
#define WEFT_NODE_AGENT_CONSUMER_FILE_CLIENT_H_

#include <map>
#include <string>

#include "lib/store/store.h"
#include "node-agent/consumer/agent_link.h"

namespace weft::consumer {

class FileClient : public store::FileMaker {
 public:
  explicit FileClient(AgentLink& link) : link_(&link) {}
  // kTimeout: no agent answered. Each event of a stream without a file calls this. It therefore
  // requests a file that was not available again only after kFileRetry; after kTimeout, it waits as
  // long for all files.
  Result<UniqueFd> OpenFile(std::string_view relative_name) override;

 private:
  AgentLink* link_;
  uint64_t next_request_ = 1;
  uint64_t unanswered_ns_ = 0;  // when no agent had answered; 0: it has
  struct Refusal {
    uint64_t at_ns = 0;
    Error error;
  };
  std::map<std::string, Refusal> refused_;
};

}  // namespace weft::consumer

#endif  // WEFT_NODE_AGENT_CONSUMER_FILE_CLIENT_H_
