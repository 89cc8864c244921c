// SPDX-License-Identifier: Apache-2.0
// See file_client.h.
#include "node-agent/consumer/file_client.h"

#include <cstring>

#include "node-agent/consumer/limits.h"

namespace weft::consumer {

Result<UniqueFd> FileClient::OpenFile(std::string_view relative_name) {
  const std::string name(relative_name);
  if (failed_at_ns_ != 0 && AgentLink::NowNs() - failed_at_ns_ < kFileRetry) {
    return Fail(ErrorCode::kTimeout, name + ": no agent to open it");
  }
  failed_at_ns_ = 0;
  const uint64_t request = next_request_++;
  const uint64_t deadline = AgentLink::NowNs() + kFileWait;
  uint64_t asked = 0;  // the connection on which it was asked
  while (AgentLink::NowNs() < deadline && !link_->exiting()) {
    if (link_->connected() && asked != link_->connection()) {
      // A new agent knows nothing of what was asked of the old one.
      if (link_->Send(ipc::FileRequest{request, name})) asked = link_->connection();
    }
    std::optional<ipc::FileAnswer> answer = link_->WaitForFile(request);
    if (!answer) continue;
    if (answer->error != 0) {
      errno = answer->error;
      return FailErrno(name);
    }
    return std::move(answer->fd);
  }
  failed_at_ns_ = AgentLink::NowNs();
  return Fail(ErrorCode::kTimeout, name + ": no agent to open it");
}

}  // namespace weft::consumer
