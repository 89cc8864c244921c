// SPDX-License-Identifier: Apache-2.0
// What the finder brings: ring sets that take the same way as announced ones, and control areas of
// processes that are older than the agent, which are adopted. Both are kept by the keeper from then
// on.
#include <unistd.h>

#include "lib/base/pidfd.h"
#include "node-agent/agent/base/copy_fd.h"
#include "node-agent/agent/base/limits.h"
#include "node-agent/agent/core/agent.h"
#include "node-agent/agent/discovery/late_ring.h"

namespace weft::agent {
namespace {

const std::string kControlKey = "control/";
const std::string kRootKey = "root/";

}  // namespace

void Agent::Look() {
  bool any = false;
  ForEachChannel([&](Session&, SessionChannel& channel) {
    any = any || channel.phase != ChannelPhase::kDrained;
  });
  if (!takes_arrivals_ || !any) return;
  finder_.LookAtMembers();
  for (const uint64_t inode : finder_.UnmappedControls()) DropControl(inode);
}

Finder::Verdict Agent::OnFound(FoundMemory found) {
  if (found.is_control) {
    const auto container = orders_->ContainerOf(found.pid);
    return container && AdoptControl(*container, std::move(found.fd), found.inode)
               ? Finder::Verdict::kKnown
               : Finder::Verdict::kTryAgain;
  }
  const auto identified = IdentifyRing(found.fd);
  if (!identified) return Finder::Verdict::kTryAgain;
  // Another session's, which is nobody's fault.
  SessionChannel* channel = Find(identified->channel_id).channel;
  if (channel == nullptr || channel->accounted.contains(identified->instance))
    return Finder::Verdict::kKnown;
  if (!orders_->Belongs(channel->container, {.pid = found.pid, .pidfd = &found.pidfd}))
    return Finder::Verdict::kTryAgain;
  // It may wait in the doorbell's backlog for the same reason. What is not taken before its channel
  // ends counts as late.
  if (TakesRings(*channel) && !processes_.HasRoom()) return Finder::Verdict::kLater;
  ipc::Arrived arrived{.key = "",
                       .doorbell = "",
                       .message = "",
                       .pid = found.pid,
                       .uid = found.uid,
                       .gid = 0,
                       .fd = std::move(found.fd),
                       .pidfd = std::move(found.pidfd)};
  TakeRing(*channel, arrived, identified->instance);
  return Finder::Verdict::kKnown;
}

// --- control areas -------------------------------------------------------------------------------

Status Agent::AdoptControl(const std::string& container, UniqueFd fd, uint64_t inode) {
  const auto area = containers_.Adopt(container, inode, std::move(fd), InForce(container));
  if (!area) return control_problem_ = std::unexpected(area.error());
  ToKeeper(ipc::Keep{kControlKey + std::to_string(inode), container, CopyFd((*area)->get())});
  finder_.AddControl(inode);
  return {};
}

void Agent::DropControl(uint64_t inode) {
  ToKeeper(ipc::Drop{kControlKey + std::to_string(inode)});
  finder_.RemoveControl(inode);
  containers_.Drop(inode);
}

// --- whom it concerns ----------------------------------------------------------------------------

bool Agent::RestoreFound(ipc::Kept& kept) {
  if (kept.key.starts_with(kRootKey)) {
    finder_.AddRoot(std::atoi(kept.key.c_str() + kRootKey.size()), std::move(kept.fd));
  } else if (kept.key.starts_with(kControlKey)) {
    kept_areas_.push_back(std::move(kept));
  } else {
    return false;
  }
  return true;
}

// After containers and sessions are there, which say what the areas shall say.
void Agent::RestoredFound() {
  for (ipc::Kept& kept : kept_areas_) {
    const uint64_t inode = std::strtoull(kept.key.c_str() + kControlKey.size(), nullptr, 10);
    if (!AdoptControl(kept.meta, std::move(kept.fd), inode)) ToKeeper(ipc::Drop{kept.key});
  }
  kept_areas_.clear();
  processes_.ForEachRing([this](const RingEntry& ring) { finder_.Know(ring.fd); });
}

void Agent::AddRoot(int32_t pid, UniqueFd pidfd) {
  ToKeeper(ipc::Keep{kRootKey + std::to_string(pid), "", CopyFd(pidfd.get())});
  finder_.AddRoot(pid, std::move(pidfd));
}

Status Agent::LookForControls() {
  control_problem_ = {};
  finder_.LookAtMembers();
  return control_problem_;
}

void Agent::RemoveRoots(const std::vector<int32_t>& pids) {
  for (const int32_t pid : pids) ToKeeper(ipc::Drop{kRootKey + std::to_string(pid)});
  finder_.RemoveRoots();
  for (const uint64_t inode : containers_.Adopted()) DropControl(inode);
}

// The channel's ring sets are done with; processes that live on still map them.
void Agent::AccountRings(SessionChannel& channel) {
  processes_.ForEachRing([&](const RingEntry& ring) {
    if (ring.channel_id == channel.definition.id) channel.accounted.insert(ring.instance);
  });
}

}  // namespace weft::agent
