// SPDX-License-Identifier: Apache-2.0
// The kernel's part of a session on this node: one channel, whose scope follows the pods. See
// node.h.
#include <algorithm>

#include "lib/api/selector.h"
#include "lib/base/background.h"
#include "node-agent/agent/base/limits.h"
#include "node-agent/agent/cluster/node.h"
#include "node-agent/kernel/module.h"

namespace weft::agent {

bool Node::SelectsForKernel(const Session& session, const Pod& pod) {
  return !pod.gone && !pod.facts.is_over &&
         pod.facts.name_space == session.order->metadata.name_space &&
         api::Matches(session.order->spec.record.pods.selector, pod.facts.labels);
}

// The cgroups of the pods that are meant, or of their containers where these are named. What is not
// there yet is looked for again.
std::set<uint64_t> Node::KernelScope(const Session& session) {
  std::set<uint64_t> scope;
  if (session.is_cluster_wide() || !kernel_.has_cgroups() ||
      !session.order->spec.record.RecordsKernel())
    return scope;
  // Cgroups are not looked for, again and again, for what cannot be recorded.
  if (!kernel_.state().is_ready && session.KernelChannel() == nullptr) return scope;
  const api::PodSelection& selection = session.order->spec.record.pods;
  for (auto& [uid, pod] : pods_) {
    if (!SelectsForKernel(session, pod)) continue;
    if (pod.cgroup == 0) pod.cgroup = kernel_.cgroups().OfPod(uid).value_or(0);
    if (pod.cgroup == 0) kernel_unsettled_ = true;
    if (selection.containers.empty()) {
      if (pod.cgroup != 0) scope.insert(pod.cgroup);
      continue;
    }
    std::set<std::string> ids;
    for (const auto& [id, name] : pod.facts.ids)
      if (api::MatchesContainer(selection, name)) ids.insert(id);
    scope.merge(kernel_.cgroups().OfContainers(uid, ids));
  }
  return scope;
}

// Whether the session has, or gets, a channel of the kernel. The first pod makes it, but for a
// cluster-wide one, and it stays to the end, also while an agent that came back is still finding
// out about the module.
bool Node::WantsKernelChannel(const std::string& uid, Session& session,
                              const std::set<uint64_t>& scope) {
  if (!IsActive(uid, session) || !session.order->spec.record.RecordsKernel()) return false;
  if (session.KernelChannel() != nullptr) return true;
  const bool has_whom = session.is_cluster_wide() || !scope.empty();
  if (!kernel_.state(session.is_cluster_wide()).is_ready || !has_whom ||
      !session.kernel_refusal.empty())
    return false;
  auto events = ResolveKernelEvents(uid, session);
  if (!events) return false;
  if (*events)
    session.AddKernelChannel(std::move(**events));
  else
    session.kernel_refusal = events->error().message;
  return events->has_value();
}

// A kernel's types are megabytes: they are read on another thread, for one session at a time. None:
// not yet.
std::optional<Result<CompiledChannel>> Node::ResolveKernelEvents(const std::string& uid,
                                                                 const Session& session) {
  const api::TraceSpec& spec = session.order->spec.record;
  const auto found = resolving_.find(uid);
  if (found != resolving_.end() && IsDone(found->second.events)) {
    const bool is_asked = found->second.spec == spec;  // the order may be another one now
    auto events = found->second.events.get();
    resolving_.erase(found);
    if (is_asked) return events;
  }
  kernel_unsettled_ = true;
  std::erase_if(resolving_, [&](const auto& entry) {
    return IsDone(entry.second.events) && agent_.parts().sessions.Find(entry.first) == nullptr;
  });
  const auto is_done = [](const auto& entry) { return IsDone(entry.second.events); };
  if (!std::ranges::all_of(resolving_, is_done)) return std::nullopt;
  KernelReach reach{.cluster_wide = session.is_cluster_wide(),
                    .of_tenant = !session.is_cluster_wide()};
  // Files of the node itself.
  if (reach.cluster_wide) reach.object_root = "/proc/1/root";
  auto events = InBackground([spec, reach]() -> Result<CompiledChannel> {
    KernelReach here = reach;
    // A module that went in this moment is missed when the session begins, with its reason.
    const auto support = kernel::ThisBackend().Probe();
    if (support) here.features = support->features;
    CompiledChannel compiled;
    WEFT_TRY(CompileKernelEvents(spec, here, compiled));
    return compiled;
  });
  resolving_.emplace(uid, Resolving{spec, std::move(events)});
  return std::nullopt;
}

void Node::SettleKernelScope(Session& session, const std::set<uint64_t>& scope) {
  SessionChannel* channel = session.KernelChannel();
  if (channel == nullptr || channel->phase != ChannelPhase::kOn || channel->scope == scope) return;
  const Status changed = agent_.parts().kernel.SetScope(*channel, scope);
  // A pod that went in this moment is found gone the next time.
  if (!changed) kernel_unsettled_ = true;
  if (!changed && changed.error().code != ErrorCode::kNotFound) Note(changed.error().message);
}

// Cgroups announce nothing.
void Node::PollKernel(int64_t now_ns) {
  const bool wanted = std::ranges::any_of(agent_.parts().sessions.all(), [](const auto& entry) {
    return entry.second->order->spec.record.RecordsKernel();
  });
  if (kernel_.Poll(now_ns, wanted)) {
    settled_ = false;
    metrics_.SetKernel(kernel_.state().is_ready, kernel_.state().reason);
    if (!kernel_.state().is_ready)
      Note("kernel tracing: " + kernel_.state().reason + ": " + kernel_.state().message);
  }
  if (!kernel_unsettled_ || std::chrono::nanoseconds(now_ns - cgroups_looked_ns_) < kCgroupInterval)
    return;
  cgroups_looked_ns_ = now_ns;
  kernel_unsettled_ = settled_ = false;
}

}  // namespace weft::agent
