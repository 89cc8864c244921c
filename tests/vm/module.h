// SPDX-License-Identifier: Apache-2.0
// weft.ko with events as the agent resolves them: one session with one ring, cluster-wide or of
// some cgroups, read when it is switched off. One thread.
#ifndef WEFT_TESTS_VM_MODULE_H_
#define WEFT_TESTS_VM_MODULE_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "lib/base/unique_fd.h"
#include "lib/event/description.h"
#include "node-agent/kernel/resolve.h"

namespace weft::vm {

// A record's fields by name: numbers as decimal text, text as itself, other bytes in hexadecimal.
struct SeenEvent {
  std::string name;
  uint64_t time = 0;
  std::map<std::string, std::string> fields;
};

class Module {
 public:
  // Loads the file that WEFT_MODULE names; throws std::runtime_error. Records the tasks of these
  // cgroups (inode numbers of their folders); none: every task.
  explicit Module(const std::vector<uint64_t>& cgroups = {});
  ~Module();
  Module(const Module&) = delete;
  Module& operator=(const Module&) = delete;

  // 0 or -errno.
  int Add(const kernel::Resolved& resolved);
  void Switch(bool on);
  // 0 or -errno.
  int Statedump();

  // Returns everything that was recorded; call it after Switch(false). Throws if a record does not
  // fit its description.
  std::vector<SeenEvent> Read();

 private:
  [[nodiscard]] SeenEvent Decode(uint16_t id, const uint8_t* payload, size_t size) const;
  void ReadSlot(uint32_t slot, std::vector<SeenEvent>* out);
  void ReadAt(uint64_t offset, void* to, size_t size) const;

  UniqueFd device_, session_, ring_;
  std::map<uint16_t, EventDescription> events_;
};

}  // namespace weft::vm

#endif  // WEFT_TESTS_VM_MODULE_H_
