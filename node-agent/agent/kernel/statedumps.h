// SPDX-License-Identifier: Apache-2.0
// Runs state dumps of weft.ko's sessions, each in a thread of its own: a dump waits for the
// consumer, which may wait for the agent. Such a thread has its own copy of the session's
// descriptor, and uses nothing of the agent.
//
// The agent's thread calls. A dump ends by itself, or soon after its session was switched off.
#ifndef WEFT_NODE_AGENT_AGENT_KERNEL_STATEDUMPS_H_
#define WEFT_NODE_AGENT_AGENT_KERNEL_STATEDUMPS_H_

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "lib/base/result.h"
#include "lib/base/unique_fd.h"
#include "node-agent/kernel/backend.h"

namespace weft::agent {

class Statedumps {
 public:
  // `backend` outlives this.
  explicit Statedumps(const kernel::Backend& backend) : backend_(backend) {}
  Statedumps(const Statedumps&) = delete;
  Statedumps& operator=(const Statedumps&) = delete;
  // Waits for those that are at work.
  ~Statedumps();

  // Dumps the state of tasks in this cgroup, or (0) of all in scope. If a dump of this channel is
  // running, TakeProblems begins the new one after it.
  void Begin(uint64_t channel, UniqueFd session, uint64_t cgroup);
  // Waits for the dump. The session must have been switched off before.
  void Join(uint64_t channel);
  // Begins what waited. Why dumps that are over failed, for people; not that they were ended.
  [[nodiscard]] std::vector<std::string> TakeProblems();

 private:
  struct Dump {
    UniqueFd session;
    std::set<uint64_t> cgroups;  // the thread's, as the result, until it is over
    Status result;
    std::atomic<bool> over{false};
    std::thread thread;
    UniqueFd next_session;  // with `next`
    std::set<uint64_t> next;
  };

  void Start(uint64_t channel, UniqueFd session, std::set<uint64_t> cgroups);
  void Finish(Dump& dump);

  const kernel::Backend& backend_;
  std::map<uint64_t, std::unique_ptr<Dump>> dumps_;  // by channel
  std::vector<std::string> problems_;
};

}  // namespace weft::agent

#endif  // WEFT_NODE_AGENT_AGENT_KERNEL_STATEDUMPS_H_
