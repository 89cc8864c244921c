// SPDX-License-Identifier: Apache-2.0
// Reads what /proc shows of a process's memory, as far as weft searches it for its own: lines of
// /proc/PID/maps, and a descriptor of the memory that is mapped in a range. The tenant chooses
// names in maps; devices and inode numbers are the kernel's. Thread-safety: pure functions.
#ifndef WEFT_NODE_AGENT_AGENT_DISCOVERY_MEMORY_MAPS_H_
#define WEFT_NODE_AGENT_AGENT_DISCOVERY_MEMORY_MAPS_H_

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "lib/base/result.h"
#include "lib/base/unique_fd.h"

namespace weft::agent {

struct Mapping {
  uint64_t start = 0;
  uint64_t end = 0;
  dev_t device = 0;
  uint64_t inode = 0;
  std::string name;  // as maps writes it
};

// Parses a line without its newline; std::nullopt: it is no such line.
std::optional<Mapping> ParseMapping(std::string_view line);

// Returns the mappings of files of any kind (inode not 0), from at most `max_bytes` of text. kIo:
// there is no such process, or the agent may not look.
Result<std::vector<Mapping>> ReadMappings(int32_t pid, size_t max_bytes);

// Opens the mapped file for reading and writing, but only if it is the regular file that `mapping`
// names. Nothing else is opened, since opening alone can have effects (a device). kNotFound:
// something else, or nothing, is mapped there now; kPermission: the kernel wants a privilege
// (CAP_CHECKPOINT_RESTORE).
Result<UniqueFd> OpenMapping(int32_t pid, const Mapping& mapping);

// Opens the mapped file for reading, if it is a regular one; which file it is is not checked, since
// on some file systems (overlay) maps shows another inode number than the file has. kInvalid: it is
// not regular. A file system may never answer (FUSE).
Result<UniqueFd> OpenMappedFile(int32_t pid, const Mapping& mapping);

}  // namespace weft::agent

#endif  // WEFT_NODE_AGENT_AGENT_DISCOVERY_MEMORY_MAPS_H_
