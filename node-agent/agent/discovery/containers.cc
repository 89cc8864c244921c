// SPDX-License-Identifier: Apache-2.0
// See containers.h.
#include "node-agent/agent/discovery/containers.h"

#include <unistd.h>

#include "node-agent/agent/base/limits.h"

namespace weft::agent {

Result<const UniqueFd*> Containers::Open(const std::string& key, const std::string& path) {
  auto area = access(path.c_str(), F_OK) == 0 ? control::ControlArea::Open(path)
                                              : control::ControlArea::Create(path, config_);
  if (!area) return std::unexpected(area.error());
  // Of before a reboot: rings are made as the file says.
  if (files_.empty()) config_ = area->config();
  const auto [at, is_new] = files_.insert_or_assign(key, std::move(*area));
  return &at->second.fd();
}

std::vector<uint64_t> Containers::Close(const std::string& key) {
  std::vector<uint64_t> inodes;
  for (const auto& [inode, adopted] : adopted_)
    if (adopted.container == key) inodes.push_back(inode);
  for (const uint64_t inode : inodes) adopted_.erase(inode);
  files_.erase(key);
  return inodes;
}

Result<const UniqueFd*> Containers::Adopt(const std::string& key, uint64_t inode, UniqueFd fd,
                                          const std::vector<control::ChannelSpec>& channels) {
  if (adopted_.size() >= kMaxAdoptedAreas)
    return Fail(ErrorCode::kLimit, "too many processes are recorded that way");
  WEFT_ASSIGN(control::ControlArea area, control::ControlArea::Adopt(std::move(fd), config_));
  WEFT_TRY(area.Publish(channels));
  const auto [at, is_new] = adopted_.insert_or_assign(inode, AdoptedArea{key, std::move(area)});
  return &at->second.area.fd();
}

std::vector<uint64_t> Containers::Adopted() const {
  std::vector<uint64_t> inodes;
  inodes.reserve(adopted_.size());
  for (const auto& [inode, adopted] : adopted_) inodes.push_back(inode);
  return inodes;
}

Status Containers::Publish(const std::string& key,
                           const std::vector<control::ChannelSpec>& channels,
                           std::vector<Failure>& failed) {
  for (auto& [inode, adopted] : adopted_) {
    if (adopted.container != key) continue;
    const Status published = adopted.area.Publish(channels);
    if (!published) failed.push_back({inode, published.error().message});
  }
  const auto file = files_.find(key);
  if (file == files_.end()) return {};
  return file->second.Publish(channels);
}

}  // namespace weft::agent
