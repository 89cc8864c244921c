// SPDX-License-Identifier: Apache-2.0
// The traced processes and their ring sets, as the agent knows them; the keeper holds a copy of
// every descriptor with the notes that bring this table back after a crash.
//
// A process here is an address space: exec in the same pid is a new one. It gets a number that is
// never used again, unlike pids. It is gone when no process maps its rings any more: its pid ended
// (and its parent does not share the memory, as a vfork's parent does), or its pid called exec. The
// agent's thread owns it.
#ifndef WEFT_NODE_AGENT_AGENT_DISCOVERY_PROCESSES_H_
#define WEFT_NODE_AGENT_AGENT_DISCOVERY_PROCESSES_H_

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "lib/ipc/descriptor_budget.h"
#include "lib/ipc/loop.h"
#include "lib/ipc/messages.h"

namespace weft::agent {

// Ring sets of one pid that are not read to their end: an exec chain makes one each.
inline constexpr size_t kMaxRingsPerProcess = 1024;

// The keeper's names for ring sets that were found begin with this.
inline constexpr std::string_view kFoundKey = "found/";

struct RingEntry {
  std::string key;  // the keeper's name for it
  uint64_t channel_id = 0;
  uint64_t instance = 0;
  uint64_t process = 0;
  UniqueFd fd;
  uint64_t bytes = 0;  // most bytes of the container's memory that it may use
};

struct ProcessEntry {
  uint64_t number = 0;
  int32_t pid = 0;
  int32_t parent = 0;  // 0: not known
  uint32_t uid = 0;
  std::string procname;
  UniqueFd pidfd;
  bool watched = false;
  bool gone = false;
  uint32_t looks_since = 0;  // since it is gone
  size_t rings = 0;
};

// Returns 0 if there is no such process.
int32_t ParentOf(int32_t pid);

class Processes {
 public:
  using Send = std::function<void(ipc::Message)>;         // to the keeper
  using Gone = std::function<void(const ProcessEntry&)>;  // once per process
  // Told when a ring set, which used at most `before` bytes until now, uses at most ring.bytes from
  // now on.
  using Shrunk = std::function<void(const RingEntry& ring, uint64_t before)>;

  Processes(
      ipc::Loop& loop, Send keeper, Gone gone, Shrunk shrunk = [](const RingEntry&, uint64_t) {})
      : loop_(loop),
        keeper_(std::move(keeper)),
        gone_(std::move(gone)),
        shrunk_(std::move(shrunk)) {}

  // Sets the upper half of the numbers that this agent gives.
  void SetLife(uint64_t life) { next_number_ = life << 32 | 1; }

  // Descriptors are left for one more ring set.
  [[nodiscard]] bool HasRoom() const { return rings_.size() < max_rings_; }
  // Takes a ring set that arrived (or, without a key: was found) and was identified. nullptr: it is
  // known already, or there are too many.
  RingEntry* Adopt(ipc::Arrived& arrived, uint64_t channel_id, uint64_t instance);
  // After the consumer was told of a ring set: watches its process, which may be gone already.
  void Watch(uint64_t process);
  // Takes a ring set or a process's pidfd that the keeper kept. Returns false if it is neither.
  // Call Restored afterwards.
  bool Restore(ipc::Kept& kept);
  void Restored();

  // Call it when the ring set's memory is no longer charged to its container.
  void MovedAway(uint64_t channel_id, uint64_t instance);
  void Drop(uint64_t channel_id, uint64_t instance);
  void DropChannel(uint64_t channel_id);

  [[nodiscard]] const ProcessEntry* Find(uint64_t number) const;
  [[nodiscard]] size_t Alive() const;
  [[nodiscard]] size_t RingsOf(uint64_t channel_id) const;
  [[nodiscard]] const RingEntry* FindRing(uint64_t channel_id, uint64_t instance) const;
  void ForEachRing(const std::function<void(const RingEntry&)>& visit) const;
  // Ring sets that still use their container's memory, of processes gone for `looks` calls.
  void ForEachLeft(uint32_t looks, const std::function<void(const RingEntry&)>& visit);
  void ForEachGone(const std::function<void(const ProcessEntry&)>& visit) const;

 private:
  using RingName = std::pair<uint64_t, uint64_t>;

  ProcessEntry& ProcessOf(ipc::Arrived& arrived);
  bool StillMaps(const ProcessEntry& process, int32_t pid) const;
  void OnExit(uint64_t number);
  void MarkGone(ProcessEntry& process);
  void KeepProcess(const ProcessEntry& process);
  void Shrink(RingEntry& ring, uint64_t bytes);
  void Release(RingEntry& ring);

  ipc::Loop& loop_;
  Send keeper_;
  Gone gone_;
  Shrunk shrunk_;
  const size_t max_rings_ = ipc::BudgetOf(ipc::DescriptorLimit()).rings;
  uint64_t next_number_ = 1;
  std::map<uint64_t, ProcessEntry> processes_;
  std::map<int32_t, uint64_t> by_pid_;  // the latest that is not gone
  std::map<RingName, RingEntry> rings_;
};

}  // namespace weft::agent

#endif  // WEFT_NODE_AGENT_AGENT_DISCOVERY_PROCESSES_H_
