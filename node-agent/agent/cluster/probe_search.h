// SPDX-License-Identifier: Apache-2.0
// Finds the functions of a session's spec.kernel.userProbes in the containers of its pods. It
// reaches a container's files through one of its processes, and reads them in a thread of its own:
// a container's file system may never answer (FUSE).
//
// A container is searched when it is new, and again from time to time as long as no process runs
// in it or a file is missing. The loop's thread owns the object, and does not wait for the other
// thread.
#ifndef WEFT_NODE_AGENT_AGENT_CLUSTER_PROBE_SEARCH_H_
#define WEFT_NODE_AGENT_AGENT_CLUSTER_PROBE_SEARCH_H_

#include <cstdint>
#include <future>
#include <set>
#include <string>
#include <vector>

#include "lib/api/trace.h"
#include "lib/base/result.h"
#include "lib/base/unique_fd.h"
#include "node-agent/agent/session/compile.h"

namespace weft::agent {

struct ProbedContainer {
  std::string id;
  std::string cgroup;  // its folder
  std::string name;    // for people
};

// Its root, open. kNotFound: nothing runs in it yet, or a process that is still to enter it and has
// the node's root.
Result<UniqueFd> OpenContainerRoot(const ProbedContainer& container);

class ProbeSearch {
 public:
  // Takes what was found, as events for the session's ring, and searches what was not: `there` are
  // all containers now. `may_begin`: nothing else is in the way of a thread.
  std::vector<kernel::Event> Advance(const api::TraceSpec& spec,
                                     const std::vector<ProbedContainer>& there, bool may_begin,
                                     int64_t now_ns);
  // Whether Advance has something to do though no container came.
  [[nodiscard]] bool IsDue(int64_t now_ns) const;
  // Its thread is at work.
  [[nodiscard]] bool IsGoingOn() const;
  // All containers that were there have been searched, once.
  [[nodiscard]] bool has_ended() const { return has_ended_; }
  // The ring did not take it.
  void Refuse(const kernel::Event& event, std::string why);
  // What of the rules is recorded in no container, or nowhere as a whole, and why, for people.
  [[nodiscard]] std::vector<std::string> Notices() const;

 private:
  struct Searched {
    ProbedContainer container;
    std::vector<UserProbes> rules;  // none: nothing runs in it
  };
  struct Rule {
    bool is_recorded = false;
    std::vector<std::string> notices;
  };

  static std::vector<Searched> Search(const api::TraceSpec& spec,
                                      const std::vector<ProbedContainer>& containers);
  std::vector<kernel::Event> Take();
  [[nodiscard]] std::vector<ProbedContainer> Choose(const std::vector<ProbedContainer>& there,
                                                    bool again) const;

  std::future<std::vector<Searched>> search_;  // of a promise: its destructor does not wait
  std::set<std::string> searched_;             // ids
  std::set<std::string> missing_;              // of those: to be searched again
  std::vector<Rule> rules_;
  bool is_waiting_ = false;  // for `may_begin`
  int64_t again_ns_ = 0;     // when either is looked at
  bool has_ended_ = false;
};

}  // namespace weft::agent

#endif  // WEFT_NODE_AGENT_AGENT_CLUSTER_PROBE_SEARCH_H_
