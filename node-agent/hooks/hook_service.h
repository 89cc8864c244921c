// SPDX-License-Identifier: Apache-2.0
// Keeps the processes of some containers hooked as their rules say: a thread of its own, since
// reading symbol tables and stopping processes takes milliseconds. In local mode there is one
// container; in a cluster there is a service for each namespace, so that files of one tenant that
// take long to read stop no other tenant's hooks.
//
// A process is hooked
//   at its start        it calls hooks.sock and waits (lib/abi/hooks.h, L1)
//   at first sight      every kLookInterval: a process that could not call, an object that was
//                       loaded later (dlopen). Calls before that are not recorded.
//   when rules change   all processes that map the container's control file
// A fork child has its parent's hooks already.
//
// Each process is hooked in a thread of its own, which is left behind if it takes longer than
// kHookPatience (docs/adr/0068). Until it ends, no other process of its pod is hooked.
//
// A process belongs to a container if it maps the container's control file, or an area of its own
// that the agent adopted, and, in a cluster, if its cgroup is that of the container's pod.
//
// The agent's thread calls; the methods do not wait for the work.
#ifndef WEFT_NODE_AGENT_HOOKS_HOOK_SERVICE_H_
#define WEFT_NODE_AGENT_HOOKS_HOOK_SERVICE_H_

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "lib/base/patient_work.h"
#include "lib/base/result.h"
#include "lib/base/unique_fd.h"
#include "node-agent/hooks/debug_server.h"
#include "node-agent/hooks/functions.h"
#include "node-agent/hooks/hook_process.h"
#include "node-agent/hooks/limits.h"

namespace weft::hooks {

// A container whose processes are hooked.
struct HookedContainer {
  std::string name;     // for people: "POD/CONTAINER"; "" in local mode
  std::string pod_uid;  // "" in local mode
  std::string folder;   // where its processes look for weft; "": all have areas of their own
  std::string control;  // name of the control file in it; another one for each container of a pod
  std::vector<HookRule> rules;
  // Inodes of control areas that its processes made themselves.
  std::set<uint64_t> own_areas;
  // Nothing is recorded any more of processes into which an agent loaded the library: with no
  // rules, they also get the functions of their C library back.
  bool gives_back = false;
};

class HookService {
 public:
  // Returns the uid of the pod of a process; none: it is in no pod.
  using PodOf = std::function<std::optional<std::string>(int32_t pid)>;

  // Local mode: `pod_of` is empty. `patience`: with one process. The environment names debuginfod
  // servers (debug_server.h).
  explicit HookService(PodOf pod_of = nullptr, std::chrono::milliseconds patience = kHookPatience)
      : pod_of_(std::move(pod_of)),
        server_(std::make_shared<DebugServer>(
            DebugServerSettingsFromEnvironment(/*is_cluster=*/pod_of_ != nullptr))),
        work_(patience) {}
  HookService(const HookService&) = delete;
  HookService& operator=(const HookService&) = delete;
  // Ends the thread; processes stay as they are.
  ~HookService();

  // From now on these containers have these rules. Hooks of a container without rules are taken
  // off. Processes of containers that are left out stay as they are. Returns why the last of them
  // could not be served, if one could not.
  Status SetContainers(std::vector<HookedContainer> containers);
  // Do all processes that are there have what the last rules say?
  [[nodiscard]] bool is_settled() const { return settled_.load(); }
  // Is there nothing left to do? Not while a thread that was left behind may still hook a process
  // for rules that are gone: only this service takes that off.
  [[nodiscard]] bool is_done() const { return settled_.load() && !has_more_.load(); }
  // Returns whether a thread may still work at a process of this pod by earlier orders.
  [[nodiscard]] bool MayBeAt(const std::string& pod_uid) const;
  // Processes got the library: looks at all processes once more, before which it is not settled.
  // Where nothing is recorded, a load that ended late may have woken what was given back: that is
  // done again, unless another try is due there.
  void LookAgain();
  // A number that grows whenever there is something new to tell.
  [[nodiscard]] uint64_t news() const { return news_.load(); }

  // Returns lines for people that are new: what is refused, with the reason, and processes whose
  // functions stay changed. In a cluster only the latter, if a debugger is why.
  std::vector<std::string> TakeNotes();
  // Returns a line for each rule that held: what it has hooked so far.
  [[nodiscard]] std::vector<std::string> Summary() const;
  // Returns how many functions the rules that held have hooked so far.
  [[nodiscard]] uint64_t Hooked() const;
  // Returns how often a process was searched for functions of rules so far.
  [[nodiscard]] uint64_t Searched() const;
  // Returns what is not recorded of the rules of a Trace that hold now, with the reasons.
  [[nodiscard]] std::vector<std::string> Refusals(const std::string& trace) const;

 private:
  // A container, and what the thread knows of it.
  struct Container {
    HookedContainer of;
    uint64_t inode = 0;  // of the control file; 0: there is none
    std::shared_ptr<FunctionCache> cache;
  };
  // Why a process has no hooks, or keeps those that are to be taken off.
  struct Failure {
    std::string container, why;
    bool operator==(const Failure&) const = default;
  };
  struct EarlierRule {
    std::string name;        // of the function's events, and of its object
    bool covers_it = false;  // its Trace is the same, and its events are those of both
  };
  // What came of the work at a process.
  struct Outcome {
    Status status;
    HookReport report;
  };
  // What is worked at.
  struct Subject {
    Container container;
    uint64_t objects = 0;  // as Seen has it
  };
  // It counts as changed again at this time; the next time, after a longer pause.
  struct Again {
    bool is_due = false;  // it is being tried
    std::chrono::steady_clock::time_point at;
    std::chrono::milliseconds pause = kLookInterval;
  };
  using Listeners = std::map<std::string, std::shared_ptr<UniqueFd>>;  // by pod
  struct Seen {
    int looks = 0;
    bool is_member = false;
    uint64_t objects = 0;        // a number that changes with them
    std::set<uint64_t> samples;  // hooked functions, one of each object
  };

  Result<Container> Open(HookedContainer of);
  void Work();
  void Wait();
  void TakeOrders();
  void TakeCalls();
  void TakeAgain();
  void Publish(uint64_t looked);
  bool Look();
  void TakeAnswers();
  void LookAt(int32_t pid, Seen& seen);
  bool Hook(int32_t pid, const Container& container, uint64_t objects);
  bool Take(int32_t pid, const Container& container, uint64_t objects, const Outcome& outcome);
  void TakeLate();
  [[nodiscard]] bool MayHook(int32_t pid, const Container& container) const;
  void RenewCache(const std::shared_ptr<FunctionCache>& used);
  void Record(int32_t pid, const Container& container, const Status& status,
              const HookReport& report);
  bool SetFailure(int32_t pid, Failure failure);
  void Note(const Container& container, const std::string& line);
  void NoteLeft(int32_t pid, const Container& container, const Error& error);
  [[nodiscard]] std::string Hint(const HookRule& rule) const;
  [[nodiscard]] bool IsCovered(const HookRule& rule) const;
  [[nodiscard]] const Container* ContainerOf(const std::string& pod,
                                             const std::vector<MappedRange>& ranges) const;
  [[nodiscard]] bool HasRules() const;

  const PodOf pod_of_;
  const std::shared_ptr<DebugServer> server_;
  UniqueFd wake_;
  std::thread thread_;
  std::atomic<bool> settled_{true};
  std::atomic<bool> has_more_{false};  // after a look there was work left behind, or to do again
  std::atomic<uint64_t> news_{0};

  mutable std::mutex mutex_;  // of the next members
  bool ends_ = false;
  std::vector<Container> wanted_;
  Listeners wanted_listeners_;
  uint64_t wanted_number_ = 0;
  bool looks_again_ = false;
  std::set<std::string> late_pods_;  // whose work was left behind
  uint64_t searched_ = 0;
  std::vector<std::string> notes_;
  std::set<std::string> noted_;
  // By container: what is refused, since its rules changed.
  std::map<std::string, std::set<std::string>> refusals_;
  std::map<int32_t, Failure> failures_;  // by process
  // By the text of the rule: functions and their objects.
  std::map<std::string, HookedFunctions> hooked_;
  std::set<std::string> refused_;                // likewise: rules with a function that is refused
  std::set<std::string> has_refused_object_;     // likewise: with an object that is refused
  std::map<std::string, std::string> hints_;     // likewise: what may be meant instead
  std::map<std::string, NearNames> near_names_;  // likewise
  std::map<std::string, EarlierRule> recorded_as_;   // likewise: of rules whose function it has
  std::map<std::string, std::string> of_c_library_;  // likewise: as HookReport
  std::set<std::string> objects_;                    // that processes have

  // The thread's own.
  std::vector<Container> containers_;
  std::set<std::string> changed_;  // names of containers whose rules changed since the last look
  // Containers in which hooks could not be taken off, or functions not be given back.
  std::map<std::string, Again> again_;
  Listeners listeners_;
  uint64_t number_ = 0;
  std::map<int32_t, Seen> seen_;
  PatientWork<Outcome, Subject> work_;
  std::set<int32_t> finished_;  // late work that counts: it is not done again
  uint64_t answers_ = 0;        // of the server, that are known
  std::chrono::steady_clock::time_point took_answers_;
};

}  // namespace weft::hooks

#endif  // WEFT_NODE_AGENT_HOOKS_HOOK_SERVICE_H_
