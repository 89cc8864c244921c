// SPDX-License-Identifier: Apache-2.0
// See kernel_part.h.
#include "node-agent/agent/cluster/kernel_part.h"

#include <algorithm>

#include "lib/api/selector.h"
#include "lib/base/background.h"
#include "node-agent/agent/base/limits.h"
#include "node-agent/kernel/module.h"

namespace weft::agent {

// A cgroup that is not there yet is looked for again.
std::set<uint64_t> KernelPart::Scope(const Session& session) {
  std::set<uint64_t> scope;
  if (session.is_cluster_wide() || !support_.has_cgroups() ||
      !session.order->spec.record.RecordsKernel())
    return scope;
  // Cgroups are not looked for, again and again, for what cannot be recorded.
  if (!support_.state().is_ready && session.KernelChannel() == nullptr) return scope;
  const api::PodSelection& selection = session.order->spec.record.pods;
  for (auto& [uid, pod] : pods_.all()) {
    if (!SelectsForKernel(session, pod)) continue;
    if (pod.cgroup == 0) pod.cgroup = support_.cgroups().OfPod(uid).value_or(0);
    if (pod.cgroup == 0) is_unsettled_ = true;
    if (selection.containers.empty()) {
      if (pod.cgroup != 0) scope.insert(pod.cgroup);
      continue;
    }
    std::set<std::string> ids;
    for (const auto& [id, name] : pod.facts.ids)
      if (api::MatchesContainer(selection, name)) ids.insert(id);
    scope.merge(support_.cgroups().OfContainers(uid, ids));
  }
  return scope;
}

// The first pod makes the channel, but for a cluster-wide session, and it stays to the end, also
// while an agent that came back is still finding out about the module.
bool KernelPart::WantsChannel(const std::string& uid, Session& session,
                              const std::set<uint64_t>& scope) {
  if (!session.order->spec.record.RecordsKernel()) return false;
  if (session.KernelChannel() != nullptr) return true;
  const bool has_scope = session.is_cluster_wide() || !scope.empty();
  if (!support_.state(session.is_cluster_wide()).is_ready || !has_scope ||
      !session.kernel_refusal.empty())
    return false;
  auto events = Resolve(uid, session);
  if (!events) return false;
  if (*events)
    session.AddKernelChannel(std::move(**events));
  else
    session.kernel_refusal = events->error().message;
  return events->has_value();
}

// A kernel's types are megabytes: they are read on another thread, for one session at a time.
// Nothing is returned until then.
std::optional<Result<CompiledChannel>> KernelPart::Resolve(const std::string& uid,
                                                           const Session& session) {
  const api::TraceSpec& spec = session.order->spec.record;
  const auto found = resolving_.find(uid);
  if (found != resolving_.end() && IsDone(found->second.events)) {
    const bool is_asked = found->second.spec == spec;  // the order may be another one now
    auto events = found->second.events.get();
    resolving_.erase(found);
    if (is_asked) return events;
  }
  is_unsettled_ = true;
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

void KernelPart::SettleScope(Session& session, const std::set<uint64_t>& scope) {
  SessionChannel* channel = session.KernelChannel();
  if (channel == nullptr || channel->phase != ChannelPhase::kOn || channel->scope == scope) return;
  const Status changed = agent_.parts().kernel.SetScope(*channel, scope);
  // A pod that went in this moment is found gone the next time.
  if (!changed) is_unsettled_ = true;
  if (!changed && changed.error().code != ErrorCode::kNotFound) note_(changed.error().message);
}

// Cgroups announce nothing.
KernelPart::Polled KernelPart::Poll(int64_t now_ns) {
  const bool wanted = std::ranges::any_of(agent_.parts().sessions.all(), [](const auto& entry) {
    return entry.second->order->spec.record.RecordsKernel();
  });
  Polled polled;
  if (support_.Poll(now_ns, wanted)) {
    polled = {.is_due = true, .state_changed = true};
    const KernelState& state = support_.state();
    if (!state.is_ready) note_("kernel tracing: " + state.reason + ": " + state.message);
  }
  if (std::chrono::nanoseconds(now_ns - retried_ns_) >= kRingRetry) {
    retried_ns_ = now_ns;
    agent_.parts().channels.RetryKernel();
  }
  if (!is_unsettled_ || std::chrono::nanoseconds(now_ns - looked_ns_) < kCgroupInterval)
    return polled;
  looked_ns_ = now_ns;
  is_unsettled_ = false;
  polled.is_due = true;
  return polled;
}

}  // namespace weft::agent
