// SPDX-License-Identifier: Apache-2.0
// Runs state dumps of weft.ko's sessions, each in a thread of its own: a dump waits for the
// consumer, which may wait for the agent. Such a thread has its own copy of the session's
// descriptor, and uses nothing of the agent.
//
// Invariants:
//   1. At most one dump of a channel is running. What is asked for meanwhile is one dump after it.
//   2. Dumps of different channels do not wait for each other.
//   3. A dump that failed is reported once, except where the reason is that its session was
//      switched off, or that the cgroup is gone.
//
// The agent's thread calls. A dump ends by itself, or soon after its session was switched off.
#ifndef WEFT_NODE_AGENT_AGENT_KERNEL_STATEDUMPS_H_
#define WEFT_NODE_AGENT_AGENT_KERNEL_STATEDUMPS_H_

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "lib/base/result.h"
#include "lib/base/unique_fd.h"

namespace weft::agent {

class Statedumps {
 public:
  // Makes one dump, and returns when it is over (kernel::Backend::DumpState). Several threads call
  // it.
  using DumpState = std::function<Status(const UniqueFd& session, uint64_t cgroup)>;

  explicit Statedumps(DumpState dump_state) : dump_state_(std::move(dump_state)) {}
  Statedumps(const Statedumps&) = delete;
  Statedumps& operator=(const Statedumps&) = delete;
  // Waits for those that are at work.
  ~Statedumps();

  // Dumps the state of tasks in this cgroup, or (0) of all in scope. If a dump of this channel is
  // running, TakeProblems begins the new one after it.
  void Begin(uint64_t channel, UniqueFd session, uint64_t cgroup);
  // Waits for the dump; what is to come after it does not begin. The session must have been
  // switched off before.
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

  const DumpState dump_state_;
  std::map<uint64_t, std::unique_ptr<Dump>> dumps_;  // by channel
  std::vector<std::string> problems_;
};

}  // namespace weft::agent

#endif  // WEFT_NODE_AGENT_AGENT_KERNEL_STATEDUMPS_H_
