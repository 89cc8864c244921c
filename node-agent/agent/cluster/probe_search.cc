// SPDX-License-Identifier: Apache-2.0
// See probe_search.h.
#include "node-agent/agent/cluster/probe_search.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <fstream>
#include <iterator>

#include "lib/base/background.h"
#include "node-agent/agent/base/limits.h"
#include "node-agent/agent/cluster/cgroup.h"

namespace weft::agent {
namespace {

bool IsNodesRoot(const UniqueFd& root) {
  struct stat its{}, nodes{};
  return fstat(root.get(), &its) != 0 || stat("/proc/1/root", &nodes) != 0 ||
         (its.st_dev == nodes.st_dev && its.st_ino == nodes.st_ino);
}

}  // namespace

Result<UniqueFd> OpenContainerRoot(const ProbedContainer& container) {
  int32_t pid = 0;
  if (!(std::ifstream(container.cgroup + "/cgroup.procs") >> pid))
    return Fail(ErrorCode::kNotFound, "nothing runs in it");
  UniqueFd root(
      open(("/proc/" + std::to_string(pid) + "/root").c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  // What is open is of the process that has this number now.
  const auto place = PlaceOf(pid);
  if (!root || !place || place->container_id != container.id || IsNodesRoot(root))
    return Fail(ErrorCode::kNotFound, "nothing runs in it");
  return root;
}

std::vector<ProbeSearch::Searched> ProbeSearch::Search(
    const api::TraceSpec& spec, const std::vector<ProbedContainer>& containers) {
  std::vector<Searched> searched;
  for (const ProbedContainer& container : containers) {
    Searched& one = searched.emplace_back(container);
    const auto root = OpenContainerRoot(container);
    if (root) one.rules = CompileUserProbes(spec, "/proc/self/fd/" + std::to_string(root->get()));
  }
  return searched;
}

bool ProbeSearch::IsGoingOn() const { return search_.valid() && !IsDone(search_); }

bool ProbeSearch::IsDue(int64_t now_ns) const {
  if (search_.valid()) return !IsGoingOn();
  return (is_waiting_ || !missing_.empty()) && now_ns >= again_ns_;
}

// Each may have a file open for each rule until it is taken.
std::vector<ProbedContainer> ProbeSearch::Choose(const std::vector<ProbedContainer>& there,
                                                 bool again) const {
  const size_t most = std::max(size_t{1}, kMaxProbedFiles / std::max(size_t{1}, rules_.size()));
  std::vector<ProbedContainer> chosen;
  for (const ProbedContainer& one : there)
    if (chosen.size() < most &&
        (!searched_.contains(one.id) || (again && missing_.contains(one.id))))
      chosen.push_back(one);
  return chosen;
}

std::vector<kernel::Event> ProbeSearch::Advance(const api::TraceSpec& spec,
                                                const std::vector<ProbedContainer>& there,
                                                bool may_begin, int64_t now_ns) {
  std::vector<kernel::Event> events;
  if (IsGoingOn()) return events;
  rules_.resize(spec.kernel.user_probes.size());
  if (search_.valid()) {
    events = Take();
    again_ns_ = now_ns + std::chrono::nanoseconds(kProbeInterval).count();
  }
  const auto is_gone = [&](const std::string& id) {
    return std::ranges::find(there, id, &ProbedContainer::id) == there.end();
  };
  std::erase_if(searched_, is_gone);
  std::erase_if(missing_, is_gone);
  std::vector<ProbedContainer> chosen = Choose(there, now_ns >= again_ns_);
  is_waiting_ = !chosen.empty() && !may_begin;
  if (is_waiting_) again_ns_ = now_ns + std::chrono::nanoseconds(kCgroupInterval).count();
  if (chosen.empty()) {
    has_ended_ = true;
  } else if (may_begin) {
    search_ = InBackground([spec, chosen = std::move(chosen)] { return Search(spec, chosen); });
  }
  return events;
}

std::vector<kernel::Event> ProbeSearch::Take() {
  std::vector<kernel::Event> events;
  for (Searched& one : search_.get()) {
    const std::string& id = one.container.id;
    searched_.insert(id);
    const auto lacks_file = [](const UserProbes& probes) { return !probes.has_file; };
    if (one.rules.empty() || std::ranges::any_of(one.rules, lacks_file))
      missing_.insert(id);
    else
      missing_.erase(id);
    for (size_t i = 0; i < std::min(rules_.size(), one.rules.size()); ++i) {
      UserProbes& probes = one.rules[i];
      const bool is_recorded = !probes.events.empty();
      if (rules_[i].is_recorded && !is_recorded) continue;
      rules_[i] = {is_recorded, {}};
      for (const std::string& notice : probes.notices)
        rules_[i].notices.push_back(one.container.name + ": " + notice);
      std::ranges::move(probes.events, std::back_inserter(events));
    }
  }
  return events;
}

void ProbeSearch::Refuse(const kernel::Event& event, std::string why) {
  Rule& rule = rules_[event.twin - 1];
  if (std::ranges::find(rule.notices, why) == rule.notices.end())
    rule.notices.push_back(std::move(why));
}

std::vector<std::string> ProbeSearch::Notices() const {
  std::vector<std::string> notices;
  for (const Rule& rule : rules_) std::ranges::copy(rule.notices, std::back_inserter(notices));
  return notices;
}

}  // namespace weft::agent
