// SPDX-License-Identifier: Apache-2.0
// Tells a session which rules of its spec.user.events are of no use: no running program of its pods
// offers an event of that name, or none of the events has a field that the rule's filter names
// (lib/api/rule_check.h). A rule with a misspelt name records nothing, and the status would not say
// why.
//
// Invariants:
//   1. A rule that was offered once stays so, whatever programs come later: the message does not
//      come and go with short-lived programs.
//   2. A rule is reported as not offered only after kLooksUntilNotOffered looks in which a program
//      had the library, all its files were read, and none offered the rule. So a program that is
//      still loading its libraries is no reason for a report.
//   3. Once all rules are offered, nothing is looked at any more. Before, looking takes a small
//      share of a CPU, however much a tenant's programs offer (kEventRest).
//   4. At most one search goes on for a namespace: a file system that never answers stops only the
//      searches of its own namespace. One whose session is over is kept as long as its thread runs.
//
// The agent's thread owns it.
#ifndef WEFT_NODE_AGENT_AGENT_CLUSTER_EVENT_PART_H_
#define WEFT_NODE_AGENT_AGENT_CLUSTER_EVENT_PART_H_

#include <cstdint>
#include <future>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "node-agent/agent/cluster/pod_table.h"
#include "node-agent/agent/core/agent.h"

namespace weft::agent {

// What is known of the rules of one session. Thread-safety: none.
class RuleVerdicts {
 public:
  // What one look found. `problems`: of each rule, in order; "": it is offered.
  struct Look {
    size_t processes = 0;
    bool is_complete = false;
    std::vector<std::string> problems;
  };

  void Take(Look look);
  [[nodiscard]] bool AllOffered() const;
  // Returns a problem for each rule; none: it is not known yet.
  [[nodiscard]] std::vector<std::string> Problems() const;

 private:
  struct Rule {
    bool is_offered = false;
    std::string problem;
  };
  std::vector<Rule> rules_;
  int looks_ = 0;  // that count
};

class EventPart {
 public:
  // All outlive this.
  EventPart(Agent& agent, const PodTable& pods) : agent_(agent), pods_(pods) {}

  // Goes on searching for the session, and tells it what was found.
  void Settle(const std::string& uid, Session& session);
  // Forgets searches that are over. True: one has something to do, and sessions are to be settled.
  bool Poll(int64_t now_ns);

 private:
  struct Search {
    std::string name_space;
    api::TraceSpec spec;  // that the rules are of
    std::future<RuleVerdicts::Look> look;
    RuleVerdicts verdicts;
    int64_t began_ns = 0;
    int64_t again_ns = 0;

    [[nodiscard]] bool IsGoingOn() const;
    void Take(int64_t now_ns);
  };

  // Has the search a result to be taken, or may it look again?
  [[nodiscard]] bool IsDue(const Search& search, int64_t now_ns) const;
  [[nodiscard]] std::set<std::string> ContainersOf(const Session& session) const;
  void Begin(Search& search, const Session& session, int64_t now_ns);

  Agent& agent_;
  const PodTable& pods_;
  std::map<std::string, Search> searches_;  // by session's uid
};

}  // namespace weft::agent

#endif  // WEFT_NODE_AGENT_AGENT_CLUSTER_EVENT_PART_H_
