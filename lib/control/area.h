// SPDX-License-Identifier: Apache-2.0
// Writes a control area (lib/abi/control.h describes its contents and the order of publication).
// The agent's thread owns the object; traced processes that map the file read it at any moment.
//
// Invariants: a generation is published completely or not at all, at whatever instruction the
// writer dies. A reader finds the old rule set, the new one, or a mixture of old and new enable
// words, each of which only says "perhaps" or "no". Call Publish after Open, to complete a
// half-done publication of the predecessor.
#ifndef WEFT_LIB_CONTROL_AREA_H_
#define WEFT_LIB_CONTROL_AREA_H_

#include <cstdint>
#include <string>
#include <vector>

#include "lib/base/result.h"
#include "lib/base/unique_fd.h"
#include "lib/control/ruleset.h"

namespace weft::control {

struct AreaConfig {
  uint32_t slot_count = 1;                // possible CPUs
  uint32_t clock = WEFT_CLOCK_MONOTONIC;  // enum weft_clock_id, or what foreign memory says
};

class ControlArea {
 public:
  // Makes the file `path`, all off; what had that name is replaced in one step (rename).
  static Result<ControlArea> Create(const std::string& path, const AreaConfig& config);
  // Goes on with a file that an earlier agent made. kCorrupt: it is none.
  static Result<ControlArea> Open(const std::string& path);

  // Takes over memory that a traced process made (weft-ctl), which it can write itself: kind, size
  // and seals are checked; its contents are never trusted for other processes. Publish follows.
  // kCorrupt, kUnsupported: it is no control area of this version; kLimit: another agent has it (by
  // file lock, until `fd` and its copies are closed).
  static Result<ControlArea> Adopt(UniqueFd fd, const AreaConfig& config);

  [[nodiscard]] const UniqueFd& fd() const { return fd_; }
  [[nodiscard]] const AreaConfig& config() const { return config_; }
  [[nodiscard]] uint32_t generation() const { return generation_; }

  // Puts these channels into force, and only these, as the next generation. On an error, the old
  // channels stay in force.
  Status Publish(const std::vector<ChannelSpec>& channels);

  // Frees the memory of words and rule sets, which turns all off. Call it when no process maps the
  // area any more, and let go of it then: a process may keep the file, and the kernel counts its
  // pages for the agent, which wrote them.
  void FreePages() const;

 private:
  ControlArea() = default;
  Status WriteAt(uint64_t offset, const void* data, size_t size);
  Status WriteWords(const std::vector<uint32_t>& wanted);
  Status ReadState();
  Status ReadHints();

  UniqueFd fd_;
  std::string path_;
  AreaConfig config_;
  weft_control_header header_{};
  uint32_t generation_ = 0;
  uint64_t in_force_end_ = 0;  // end of the rule set in force in the file
  std::vector<uint32_t> words_;
};

}  // namespace weft::control

#endif  // WEFT_LIB_CONTROL_AREA_H_
