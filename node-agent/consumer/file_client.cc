// SPDX-License-Identifier: Apache-2.0
// See file_client.h.
#include "node-agent/consumer/file_client.h"

#include <cstring>

#include "node-agent/consumer/limits.h"

namespace weft::consumer {

Result<UniqueFd> FileClient::OpenFile(std::string_view relative_name) {
  const std::string name(relative_name);
  const uint64_t now = AgentLink::NowNs();
  if (unanswered_ns_ != 0 && now - unanswered_ns_ < kFileRetry) {
    return Fail(ErrorCode::kTimeout, name + ": no agent to open it");
  }
  unanswered_ns_ = 0;
  std::erase_if(refused_, [now](const auto& r) { return now - r.second.at_ns >= kFileRetry; });
  if (const auto refused = refused_.find(name); refused != refused_.end()) {
    return std::unexpected(refused->second.error);
  }
  const uint64_t request = next_request_++;
  const uint64_t deadline = now + kFileWait;
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
      auto refused = FailErrno(name);
      refused_[name] = {.at_ns = AgentLink::NowNs(), .error = refused.error()};
      return refused;
    }
    return std::move(answer->fd);
  }
  unanswered_ns_ = AgentLink::NowNs();
  return Fail(ErrorCode::kTimeout, name + ": no agent to open it");
}

}  // namespace weft::consumer
