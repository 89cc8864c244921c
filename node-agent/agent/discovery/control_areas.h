// SPDX-License-Identifier: Apache-2.0
// The control areas by which traced programs are told what is on: one file per container, and the
// areas that were adopted from processes older than it. In local mode there is one container, with
// the key "".
//
// Invariants:
//   1. The finder takes each process that maps one of these files or adopted areas for a member.
//   2. The keeper has a copy of each adopted area, under "control/INODE", with its container.
//   3. Publish puts the channels that are in force now into the file and all adopted areas of a
//      container. An adopted area that cannot be written is dropped; the file stays.
// The agent's thread owns it.
#ifndef WEFT_NODE_AGENT_AGENT_DISCOVERY_CONTROL_AREAS_H_
#define WEFT_NODE_AGENT_AGENT_DISCOVERY_CONTROL_AREAS_H_

#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "lib/base/result.h"
#include "lib/base/unique_fd.h"
#include "lib/control/area.h"
#include "lib/ipc/messages.h"
#include "node-agent/agent/discovery/finder.h"

namespace weft::agent {

class ControlAreas {
 public:
  using Send = std::function<void(ipc::Message)>;  // to the keeper
  using Note = std::function<void(std::string)>;   // a message for people
  // Returns the channels that are in force in a container.
  using InForce = std::function<std::vector<control::ChannelSpec>(const std::string& container)>;

  // `finder` outlives this. `config`: of areas that are made from now on.
  ControlAreas(const control::AreaConfig& config, Finder& finder, InForce in_force, Send keeper,
               Note note);

  // Makes the container's file PATH, or goes on with the one that is there.
  Status Open(const std::string& container, const std::string& path);
  // Closes the file and drops the container's adopted areas.
  void Close(const std::string& container);
  [[nodiscard]] bool Has(const std::string& container) const { return files_.contains(container); }
  // Tells the container's processes what is in force.
  Status Publish(const std::string& container);
  void PublishOrNote(const std::set<std::string>& containers);

  // The process that maps an area, and its namespace; "": it shares the node's limit with no other.
  // An area that the keeper kept has neither: it counts for the node's limit only.
  struct Mapper {
    std::string owner;
    int32_t pid = 0;
  };
  // Takes over a process's own area. kLimit: there are too many, which is noted once for each
  // owner, or another agent has it.
  Status Adopt(const std::string& container, uint64_t inode, UniqueFd fd, const Mapper& of);
  // Returns the inodes of the areas that were adopted for a container.
  [[nodiscard]] std::set<uint64_t> AdoptedFor(const std::string& container) const;
  // Drops areas that no process maps any more.
  void DropUnmapped();
  void DropAdopted();
  // Looks at the members' memory. Returns why an area of theirs was not adopted.
  Status LookForAreas();

  // Takes an adopted area that the keeper kept, until Restored; false: it is none.
  bool TakeKept(ipc::Kept& kept);
  // Call it when the sessions and containers of the agent before are restored: adopts the kept
  // areas again.
  void Restored();

  // Returns the clock and slots of all areas on this node.
  [[nodiscard]] const control::AreaConfig& config() const { return config_; }

 private:
  struct AdoptedArea {
    std::string container;
    Mapper of;
    control::ControlArea area;
  };

  void Drop(uint64_t inode);
  // Returns why no more areas of this process are adopted; "": there is room.
  [[nodiscard]] std::string WhyFull(const Mapper& of) const;

  control::AreaConfig config_;
  Finder& finder_;
  const InForce in_force_;
  const Send keeper_;
  const Note note_;
  std::map<std::string, control::ControlArea> files_;  // by container
  std::map<uint64_t, AdoptedArea> adopted_;            // by inode
  std::vector<ipc::Kept> kept_;                        // before Restored
  std::set<std::string> full_;                         // owners for which there was no room
  Status problem_;                                     // of the last area that was not adopted
};

}  // namespace weft::agent

#endif  // WEFT_NODE_AGENT_AGENT_DISCOVERY_CONTROL_AREAS_H_
