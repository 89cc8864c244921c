// SPDX-License-Identifier: Apache-2.0
// The areas of one process (lib/abi/hooks.h): which hooks they have, and room for more. All that is
// read is foreign. Thread-safety: one thread at a time.
#ifndef WEFT_NODE_AGENT_HOOKS_HOOK_TABLE_H_
#define WEFT_NODE_AGENT_HOOKS_HOOK_TABLE_H_

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "lib/abi/hooks.h"
#include "lib/base/bytes.h"
#include "lib/base/result.h"
#include "node-agent/hooks/event_layout.h"
#include "node-agent/hooks/process_claim.h"
#include "node-agent/hooks/process_memory.h"

namespace weft::hooks {

// A hook that is to be made.
struct NewHook {
  uint64_t address = 0;
  std::vector<uint8_t> code;  // the function, whole
  const api::FunctionRule* rule = nullptr;
  std::string function;      // the name of its events
  std::set<Moment> moments;  // what is recorded
  bool is_go = false;        // it begins with a check of its stack (go_functions.h)
  // If it is not 0, nothing is recorded: the function jumps to this one of the library.
  uint64_t replaced_by = 0;
};

// Returns the number by which an agent sees that a hook records what it is to record.
uint64_t DigestOf(const NewHook& hook);

// Returns the thunk at `thunk` of a function: it gives the hook at `hook` to the library at
// `enter`, then runs the instructions that the jump displaced. kUnsupported: they cannot be moved.
Result<std::vector<uint8_t>> MakeThunk(uint64_t thunk, uint64_t hook, uint64_t enter,
                                       uint64_t address, Bytes code);
// Likewise of a function in whose place `function` of the library runs; the displaced instructions
// are for that one.
Result<std::vector<uint8_t>> MakeDetour(uint64_t thunk, uint64_t function, uint64_t address,
                                        Bytes code);

class HookTable {
 public:
  // The process is this table's as long as it lives. kTimeout: it is another one's. kNotFound: the
  // process has no libweft.so, or one that made no areas; the message says which.
  // kCorrupt: its tables contradict themselves.
  static Result<HookTable> Open(const ProcessMemory& memory,
                                const std::vector<LoadedObject>& objects);
  // Likewise, and waits for others that work at the process, and for a library that is about to
  // begin.
  static Result<HookTable> OpenWhenFree(const ProcessMemory& memory,
                                        const std::vector<LoadedObject>& objects);

  // Is this object the library?
  static bool IsLibrary(const LoadedObject& object);
  // Is this object a library into whose load an agent died, before that had begun to work? It
  // has no use, and the process may have another one.
  static bool IsHalfLoaded(const ProcessMemory& memory, const LoadedObject& object);

  // Was the library loaded by an agent (node-agent/attach)?
  [[nodiscard]] bool is_attached() const { return is_attached_; }
  // Returns why unwinders do not find the library's code; "": they do.
  [[nodiscard]] std::string WhyUnknownToUnwinders() const;
  // Can functions of Go be hooked? If not, neither an agent that loaded the library nor the library
  // itself, by the program's note, saw that it is one of Go.
  [[nodiscard]] bool takes_go() const { return header_.enter_go != 0; }
  // What the library says, and where.
  [[nodiscard]] const weft_hooks& header() const { return header_; }
  [[nodiscard]] uint64_t header_at() const { return header_at_; }
  // All hooks, by address of the function: of several, the one that is on, or else the newest.
  [[nodiscard]] const std::map<uint64_t, weft_hook>& hooks() const { return hooks_; }
  // Writes a hook, its events and its thunk (A1, A2), and returns it. The function is not changed.
  // kUnsupported: the function's first bytes cannot be moved; kLimit: there is no room in reach;
  // kIo: the memory cannot be written.
  Result<weft_hook> Add(const NewHook& hook);

  // Is the hook's jump in its function? kUnsupported: neither is, nor the original bytes.
  [[nodiscard]] Result<bool> IsOn(const weft_hook& hook) const;

 private:
  struct Area {
    weft_hook_area place{};
    weft_hook_table table{};
  };

  HookTable(ProcessClaim claim, const ProcessMemory& memory, const weft_hooks& header,
            uint64_t header_at)
      : claim_(std::move(claim)), memory_(&memory), header_(header), header_at_(header_at) {}
  Status Load(const weft_hook_area& place);
  Result<weft_hook> AddTo(Area& area, const NewHook& hook);
  // Writes `resume` of the hook.
  [[nodiscard]] Result<std::vector<uint8_t>> MakeThunkOf(uint64_t thunk, uint64_t hook_at,
                                                         const NewHook& of, weft_hook& hook) const;

  ProcessClaim claim_;
  const ProcessMemory* memory_;
  weft_hooks header_;
  uint64_t header_at_;
  bool is_attached_ = false;
  std::vector<Area> areas_;
  std::map<uint64_t, weft_hook> hooks_;
};

}  // namespace weft::hooks

#endif  // WEFT_NODE_AGENT_HOOKS_HOOK_TABLE_H_
