// SPDX-License-Identifier: Apache-2.0
// Gives libweft.so to the processes of some containers that run without it: a thread of its own,
// since it waits for tenants' processes and reads their files. Each namespace has a service, so
// that one tenant's processes hold up no other tenant's.
//
// The thread looks at /proc every kAttachInterval. A process that executes another program loses
// the library, and gets it again at a later look. A process that refuses is tried again later, with
// growing pauses: its debugger may have ended. For a process that has the library from an earlier
// agent, Load is called once, too: that agent may have died before it had done all.
//
// Each process gets the library in a thread of its own, which is left behind if it takes longer
// than kAttachPatience, as in hooks/hook_service.h (docs/adr/0068). Until it ends, weft
// tries no other process in that pod. When it has ended, TakeChanged names the process, also if its
// container is served no more: what was changed in it is to be given back.
//
// A process is in a container if its cgroup says so, when it is found, and again while the thread
// that is used is stopped (LoadOptions::is_meant): its id may be another process's by then.
//
// The agent's thread calls; the methods do not wait for the work.
#ifndef WEFT_NODE_AGENT_AGENT_CLUSTER_ATTACH_SERVICE_H_
#define WEFT_NODE_AGENT_AGENT_CLUSTER_ATTACH_SERVICE_H_

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "lib/base/patient_work.h"
#include "lib/base/result.h"
#include "node-agent/agent/base/limits.h"
#include "node-agent/agent/cluster/cgroup.h"

namespace weft::agent {

class AttachService {
 public:
  // Returns the place of a process; none: it is in no pod.
  using PlaceOf = std::function<std::optional<CgroupPlace>(int32_t pid)>;
  // Loads the library into a process that is meant to be at a place, or, in one that has it, ends
  // what an agent left.
  using Load = std::function<Status(int32_t pid, const CgroupPlace& place)>;
  // What became of a container's processes.
  struct Outcome {
    size_t with_library = 0;
    std::map<std::string, size_t> refused;  // why -> how many
    bool operator==(const Outcome&) const = default;
  };

  // `patience`: with one process.
  AttachService(PlaceOf place_of, Load load, std::chrono::milliseconds patience = kAttachPatience)
      : place_of_(std::move(place_of)), load_(std::move(load)), work_(patience) {}
  AttachService(const AttachService&) = delete;
  AttachService& operator=(const AttachService&) = delete;
  // Ends the thread; processes stay as they are.
  ~AttachService();

  // From now on the processes at these places get the library: container id -> pod's uid. Load is
  // called again for those of a container that was left out meanwhile.
  void SetContainers(std::map<std::string, std::string> containers);
  // Has each process that was there at the last SetContainers got the library, or refused? And were
  // those that have it taken?
  [[nodiscard]] bool is_settled() const;
  // Is there nothing left to do? Not while a thread that was left behind may still load.
  [[nodiscard]] bool is_done() const;
  // A number that grows whenever there is something new to tell.
  [[nodiscard]] uint64_t news() const { return news_.load(); }
  // Returns processes that a load may have changed since the last call.
  std::vector<int32_t> TakeChanged();
  // By container id.
  [[nodiscard]] std::map<std::string, Outcome> Outcomes() const;

 private:
  using Clock = std::chrono::steady_clock;
  struct Seen {
    int looks = 0;
    std::optional<CgroupPlace> place;  // in a container that is served
    uint64_t program = 0;              // a number that another program changes
    bool is_loaded = false;            // by this service
    bool has_library = false;
    int tries = 0;
    std::string why;
    Clock::time_point next_try;
  };
  void Work();
  void Look(const std::map<std::string, std::string>& containers, bool all, uint64_t number);
  void Forget(const std::set<std::string>& containers);
  // None: it is in no container that is served.
  [[nodiscard]] std::optional<CgroupPlace> ServedPlace(
      int32_t pid, const std::map<std::string, std::string>& containers) const;
  void LookAt(int32_t pid, const CgroupPlace& place, Seen& seen);
  void Try(int32_t pid, const CgroupPlace& place, Seen& seen);
  // Loads the library, for as long as patience lasts.
  Status LoadInto(int32_t pid, const CgroupPlace& place);
  void TakeLate();
  void Publish();

  const PlaceOf place_of_;
  const Load load_;
  std::thread thread_;
  std::atomic<uint64_t> news_{0};

  mutable std::mutex mutex_;  // of the next members
  std::condition_variable wake_;
  bool ends_ = false;
  bool settled_ = true;
  bool has_late_ = false;  // work that was left behind, after the last look
  std::map<std::string, std::string> wanted_;
  std::set<std::string> left_out_;  // ids of containers, since the last look
  uint64_t wanted_number_ = 0;
  std::vector<int32_t> changed_;
  std::map<std::string, Outcome> outcomes_;

  // The thread's own.
  std::map<int32_t, Seen> seen_;
  std::vector<int32_t> newly_changed_;
  size_t with_library_ = 0;
  PatientWork<Status, CgroupPlace> work_;
};

}  // namespace weft::agent

#endif  // WEFT_NODE_AGENT_AGENT_CLUSTER_ATTACH_SERVICE_H_
