// SPDX-License-Identifier: Apache-2.0
// Finds which events the running programs of containers offer, in the files that their processes
// map: a program in which no event is on has no ring set that describes one. Only processes that
// have the library count. Reading a container's files may never end (FUSE): search in a thread of
// its own.
//
// Files are a tenant's: the search opens only regular ones, reads them piece by piece, and reads no
// more files and bytes than its limits allow. If it leaves something out, the result is incomplete.
// Thread-safety: a pure function.
#ifndef WEFT_NODE_AGENT_AGENT_CLUSTER_EVENT_SEARCH_H_
#define WEFT_NODE_AGENT_AGENT_CLUSTER_EVENT_SEARCH_H_

#include <cstdint>
#include <functional>
#include <vector>

#include "lib/event/description.h"

namespace weft::agent {

struct OfferedBySome {
  std::vector<EventDescription> events;
  size_t processes = 0;     // that have the library
  bool is_complete = true;  // false: there may be other events
};

// `is_meant`: whether a process is to be looked at.
OfferedBySome SearchEvents(const std::function<bool(int32_t pid)>& is_meant);

}  // namespace weft::agent

#endif  // WEFT_NODE_AGENT_AGENT_CLUSTER_EVENT_SEARCH_H_
