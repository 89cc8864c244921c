// SPDX-License-Identifier: Apache-2.0
// The control areas by which traced programs are told what is on: one file per container, and the
// areas that were adopted of processes older than it. In local mode there is one container, with
// the key "". The agent's thread owns it.
#ifndef WEFT_NODE_AGENT_AGENT_DISCOVERY_CONTAINERS_H_
#define WEFT_NODE_AGENT_AGENT_DISCOVERY_CONTAINERS_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "lib/base/result.h"
#include "lib/base/unique_fd.h"
#include "lib/control/area.h"

namespace weft::agent {

class Containers {
 public:
  explicit Containers(const control::AreaConfig& config) : config_(config) {}

  // The file PATH, which is made, or gone on with. The descriptor stays the container's.
  Result<const UniqueFd*> Open(const std::string& key, const std::string& path);
  // With the areas that were adopted for it, whose inodes are returned.
  std::vector<uint64_t> Close(const std::string& key);
  [[nodiscard]] bool Has(const std::string& key) const { return files_.contains(key); }

  // Takes over a process's own area and puts these channels into force in it. kLimit: too many, or
  // another agent has it.
  Result<const UniqueFd*> Adopt(const std::string& key, uint64_t inode, UniqueFd fd,
                                const std::vector<control::ChannelSpec>& channels);
  void Drop(uint64_t inode) { adopted_.erase(inode); }
  [[nodiscard]] std::vector<uint64_t> Adopted() const;

  // Puts these channels into force in the container, and only these. An area of a process that
  // cannot be told is named in `failed`, by inode, with the reason.
  struct Failure {
    uint64_t inode = 0;
    std::string why;
  };
  Status Publish(const std::string& key, const std::vector<control::ChannelSpec>& channels,
                 std::vector<Failure>& failed);

  // Clock and slots of all areas here.
  [[nodiscard]] const control::AreaConfig& config() const { return config_; }

 private:
  struct AdoptedArea {
    std::string container;
    control::ControlArea area;
  };

  control::AreaConfig config_;
  std::map<std::string, control::ControlArea> files_;
  std::map<uint64_t, AdoptedArea> adopted_;
};

}  // namespace weft::agent

#endif  // WEFT_NODE_AGENT_AGENT_DISCOVERY_CONTAINERS_H_
