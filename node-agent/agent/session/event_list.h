// SPDX-License-Identifier: Apache-2.0
// Collects the events of one kernel channel while compile_kernel.cc goes through its rules: which
// events are recorded, which are not, and which fields they lack, with a text for each.
//
// A rule may match several events, and several rules may match one event: it is recorded if one of
// them matches. A rule does not match an event that lacks what the rule's filter reads, as in user
// space. If all events of a rule lack it, the rule is a mistake. It is used by one thread.
#ifndef WEFT_NODE_AGENT_AGENT_SESSION_EVENT_LIST_H_
#define WEFT_NODE_AGENT_AGENT_SESSION_EVENT_LIST_H_

#include <deque>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "lib/api/trace.h"
#include "lib/base/result.h"
#include "lib/base/unique_fd.h"
#include "node-agent/agent/session/compile.h"
#include "node-agent/kernel/resolve.h"

namespace weft::agent {

// Things that events lack, each reported once, with the events.
class Absences {
 public:
  void Note(const std::string& what, const std::string& event, const std::string& hint = "");
  [[nodiscard]] bool empty() const { return of_.empty(); }
  // Returns `event "a"` and what it lacks: the first thing, with its hint.
  [[nodiscard]] std::string First() const;
  // Appends a line for each thing, up to a limit, with `end` behind it.
  void Tell(const std::string& end, std::vector<std::string>& to) const;

 private:
  struct Events {
    std::vector<std::string> names;  // the first ones
    size_t count = 0;
    std::string hint;  // of the first
  };
  static std::string Subject(const Events& events);

  std::map<std::string, Events> of_;
};

class EventList {
 public:
  struct Rule {
    std::string what;  // for people: `tracepoint "sched_*"`
    std::string filter;
    std::vector<uint8_t> program;  // of that
    bool by_name = false;          // not by a pattern
    bool means_event = false;      // one has what the filter asks for
    Absences absences;
  };
  using Choice = std::vector<Rule*>;  // the rules that mean an event

  // Both must outlive this object. `of_tenant`: see KernelReach.
  EventList(const api::TraceSpec& spec, CompiledChannel& to, bool of_tenant)
      : spec_(spec), to_(to), of_tenant_(of_tenant) {}

  // kInvalid: the filter, or the Trace's, cannot be compiled, or asks for what a namespace does not
  // get. The rule is the list's.
  Result<Rule*> Ask(const char* kind, const std::string& name, const std::string& filter);

  // Adds an event. If it cannot be recorded, the reason is reported if the rule names it; an event
  // that only a pattern matches is left out silently.
  Status Add(const Choice& choice, Result<kernel::Resolved> resolved,
             const std::shared_ptr<const UniqueFd>& file = nullptr);
  // Adds an event of the state dump. The Trace's filters do not apply to it.
  void AddState(kernel::Resolved resolved);

  // Reports that a part of the Trace is not recorded.
  void Note(std::string what) { to_.notices.push_back(std::move(what)); }
  // Reports that something in the Trace cannot be recorded.
  void Refuse(const std::string& why);

  // Call it when all events are added. kInvalid: a rule's filter asks for something that none of
  // its events has.
  Status CheckRules();
  // kUnsupported: there is no event. The message gives the reason for each one that was asked for
  // by name, up to a limit.
  [[nodiscard]] Status CheckNotEmpty() const;

 private:
  // Returns the rules whose filters the event fits, and reports the others.
  Result<Choice> Fitting(const Choice& choice, const kernel::Resolved& resolved);

  const api::TraceSpec& spec_;
  CompiledChannel& to_;
  const bool of_tenant_;
  std::deque<Rule> rules_;
  Absences of_all_;    // what spec.filter asks for
  Absences left_out_;  // fields
  std::vector<std::string> refused_;
  std::string why_ = "spec.kernel: nothing can be recorded";  // the last one of a pattern's
};

}  // namespace weft::agent

#endif  // WEFT_NODE_AGENT_AGENT_SESSION_EVENT_LIST_H_
