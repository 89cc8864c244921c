// SPDX-License-Identifier: Apache-2.0
// Keeps the processes of one container hooked as the rules say: a thread of its own, since reading
// symbol tables and stopping processes takes milliseconds.
//
// A process is hooked
//   at its start        it calls hooks.sock and waits (lib/abi/hooks.h, L1)
//   at first sight      every kLookInterval: a process that could not call, an object that was
//                       loaded later (dlopen). Calls before that are not recorded.
//   when rules change   all processes that map the container's control file
// A fork child has its parent's hooks already.
//
// The agent's thread calls; the methods do not wait for the work.
#ifndef WEFT_NODE_AGENT_HOOKS_HOOK_SERVICE_H_
#define WEFT_NODE_AGENT_HOOKS_HOOK_SERVICE_H_

#include <atomic>
#include <cstdint>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "lib/base/result.h"
#include "lib/base/unique_fd.h"
#include "node-agent/hooks/functions.h"
#include "node-agent/hooks/hook_process.h"

namespace weft::hooks {

class HookService {
 public:
  HookService() = default;
  HookService(const HookService&) = delete;
  HookService& operator=(const HookService&) = delete;
  // Ends the thread; processes stay as they are.
  ~HookService();

  // Begins. `folder`: where processes look for weft; `control`: name of the control file in it.
  Status Start(const std::string& folder, const std::string& control);
  [[nodiscard]] bool has_started() const { return thread_.joinable(); }
  // From now on these rules hold. With none, all hooks are taken off.
  void SetRules(std::vector<HookRule> rules);
  // Do all processes that are there have what the last rules say?
  [[nodiscard]] bool is_settled() const { return settled_.load(); }

  // Returns lines for people that are new: what is refused, with the reason.
  std::vector<std::string> TakeNotes();
  // Returns a line for each rule that held: what it has hooked so far.
  [[nodiscard]] std::vector<std::string> Summary() const;

 private:
  struct Seen {
    int looks = 0;
    bool is_member = false;
    uint64_t objects = 0;  // a number that changes with them
  };

  void Work();
  void TakeCalls();
  void Look(bool all);
  void LookAt(int32_t pid, Seen& seen, bool all);
  void Hook(int32_t pid);
  void Record(int32_t pid, const Status& status, const HookReport& report);
  void Note(const std::string& text);
  void NoteUnknown(const std::vector<HookRule>& rules);
  [[nodiscard]] std::string Hint(const HookRule& rule) const;
  [[nodiscard]] bool IsMember(const std::vector<MappedRange>& ranges) const;

  UniqueFd listener_;
  UniqueFd wake_;
  std::string control_;  // with a slash before it
  uint64_t control_inode_ = 0;
  std::thread thread_;
  std::atomic<bool> settled_{true};

  mutable std::mutex mutex_;  // of the next members
  bool ends_ = false;
  std::vector<HookRule> wanted_;
  uint64_t wanted_number_ = 0;
  std::vector<std::string> notes_;
  std::set<std::string> noted_;
  // By the text of the rule: functions and their objects.
  std::map<std::string, std::map<std::pair<std::string, std::string>, TypeSource>> hooked_;
  std::map<std::string, std::string> hints_;     // likewise: what may be meant instead
  std::map<std::string, NearNames> near_names_;  // likewise
  std::set<std::string> objects_;                // that processes have

  // The thread's own.
  std::vector<HookRule> rules_;
  uint64_t number_ = 0;
  FunctionCache cache_;
  std::map<int32_t, Seen> seen_;
};

}  // namespace weft::hooks

#endif  // WEFT_NODE_AGENT_HOOKS_HOOK_SERVICE_H_
