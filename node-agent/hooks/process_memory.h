// SPDX-License-Identifier: Apache-2.0
// The memory of a traced process, as far as hooks need it: its mappings, its bytes, the files that
// are mapped. All of it is foreign. Thread-safety: one thread at a time.
#ifndef WEFT_NODE_AGENT_HOOKS_PROCESS_MEMORY_H_
#define WEFT_NODE_AGENT_HOOKS_PROCESS_MEMORY_H_

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "lib/base/bytes.h"
#include "lib/base/result.h"
#include "lib/base/unique_fd.h"

namespace weft::hooks {

// The bytes of a value, as ProcessMemory::Write takes them.
template <typename T>
Bytes AsBytes(const T& value) {
  return Bytes(reinterpret_cast<const uint8_t*>(&value), sizeof(value));
}

struct MappedRange {
  uint64_t begin = 0;
  uint64_t end = 0;
  uint64_t offset = 0;  // in the file
  bool executable = false;
  uint64_t inode = 0;  // 0: no file
  std::string device;  // as maps writes it
  std::string path;    // as maps writes it
  bool operator==(const MappedRange&) const = default;
};

// Parses a line of /proc/PID/maps without its newline; std::nullopt: it is no such line.
std::optional<MappedRange> ParseRange(std::string_view line);
// Returns all mappings. kIo: there is no such process, or this one may not look.
Result<std::vector<MappedRange>> ReadRanges(int32_t pid);

// An object file that is mapped with code.
struct LoadedObject {
  std::string path;
  std::string name;  // the last part of the path, made printable
  std::string device;
  uint64_t inode = 0;
  uint64_t begin = 0;  // of its first mapping, which has the file's first bytes
  uint64_t end = 0;    // of its last one
  std::vector<MappedRange> code;
  MappedRange first;
};
std::vector<LoadedObject> ObjectsOf(const std::vector<MappedRange>& ranges);

// Are the pages at all of these addresses copies of the process's own? Code that an agent changed
// is; that of an object which was unloaded and loaded again at its old address is not. Reads no
// page, which may lie on a file system that never answers. True if it cannot be known.
bool ArePagesOwn(int32_t pid, const std::set<uint64_t>& addresses);

class ProcessMemory {
 public:
  // kPermission, kIo: this process may not read and write the other one's memory.
  static Result<ProcessMemory> Open(int32_t pid);

  [[nodiscard]] int32_t pid() const { return pid_; }
  [[nodiscard]] bool Read(uint64_t address, void* to, size_t size) const;
  // Writes also where the process itself may not write.
  [[nodiscard]] Status Write(uint64_t address, Bytes bytes) const;
  // Opens the file of a mapping: the very file that is mapped, also if its path has another by now.
  [[nodiscard]] Result<UniqueFd> OpenObject(const LoadedObject& object) const;

 private:
  ProcessMemory(int32_t pid, UniqueFd memory) : pid_(pid), memory_(std::move(memory)) {}

  int32_t pid_;
  UniqueFd memory_;
};

}  // namespace weft::hooks

#endif  // WEFT_NODE_AGENT_HOOKS_PROCESS_MEMORY_H_
