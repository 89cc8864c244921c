// SPDX-License-Identifier: Apache-2.0
// What the finder brings: ring sets that take the same way as announced ones, and control areas of
// processes that are older than the agent, which are adopted. Both are kept by the keeper from then on.
#include <fcntl.h>
#include <unistd.h>

#include "lib/base/pidfd.h"
#include "node-agent/agent/agent.h"
#include "node-agent/agent/late_ring.h"
#include "node-agent/agent/limits.h"

namespace weft::agent {
namespace {

const std::string kControlKey = "control/";
const std::string kRootKey = "root/";

UniqueFd Copy(int fd) { return UniqueFd(fcntl(fd, F_DUPFD_CLOEXEC, 3)); }

}  // namespace

void Agent::Look() {
  const ipc::Phase phase = session_.phase();
  if (!complete_ || phase == ipc::Phase::kNone || phase == ipc::Phase::kStopped) return;
  finder_.LookAtMembers();
  for (const uint64_t inode : finder_.UnmappedControls()) DropControl(inode);
}

Finder::Verdict Agent::OnFound(FoundMemory found) {
  if (found.is_control)
    return AdoptControl(std::move(found.fd), found.inode) ? Finder::Verdict::kKnown
                                                          : Finder::Verdict::kTryAgain;
  const auto identified = IdentifyRing(found.fd);
  if (!identified) return Finder::Verdict::kTryAgain;
  // Another session's, which is nobody's fault.
  SessionChannel* channel = session_.Find(identified->channel_id);
  if (channel == nullptr || channel->accounted.contains(identified->instance))
    return Finder::Verdict::kKnown;
  ipc::Arrived arrived{.key = "",
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

Status Agent::AdoptControl(UniqueFd fd, uint64_t inode) {
  if (areas_.size() >= kMaxAdoptedAreas)
    return control_problem_ = Fail(ErrorCode::kLimit, "too many processes are recorded that way");
  auto area = control::ControlArea::Adopt(std::move(fd), control_->config());
  if (!area) return control_problem_ = std::unexpected(area.error());
  if (const Status published = area->Publish(session_.Published()); !published)
    return control_problem_ = published;
  ToKeeper(ipc::Keep{kControlKey + std::to_string(inode), "", Copy(area->fd().get())});
  areas_.emplace(inode, std::move(*area));
  finder_.AddControl(inode);
  return {};
}

void Agent::DropControl(uint64_t inode) {
  ToKeeper(ipc::Drop{kControlKey + std::to_string(inode)});
  finder_.RemoveControl(inode);
  areas_.erase(inode);
}

// A process that cannot be told is none of this session's any more; the control file is another matter.
Status Agent::Publish() {
  const auto specs = session_.Published();
  std::vector<uint64_t> failed;
  for (auto& [inode, area] : areas_) {
    const Status published = area.Publish(specs);
    if (published) continue;
    Note(published.error().message);
    failed.push_back(inode);
  }
  for (const uint64_t inode : failed) DropControl(inode);
  return control_->Publish(specs);
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

// After the control file is there, which says what the areas shall say.
void Agent::RestoredFound() {
  for (ipc::Kept& kept : kept_areas_) {
    const uint64_t inode = std::strtoull(kept.key.c_str() + kControlKey.size(), nullptr, 10);
    if (!AdoptControl(std::move(kept.fd), inode)) ToKeeper(ipc::Drop{kept.key});
  }
  kept_areas_.clear();
  processes_.ForEachRing([this](const RingEntry& ring) { finder_.Know(ring.fd); });
}

void Agent::AddRoot(int32_t pid, UniqueFd pidfd) {
  ToKeeper(ipc::Keep{kRootKey + std::to_string(pid), "", Copy(pidfd.get())});
  finder_.AddRoot(pid, std::move(pidfd));
}

// Without pids: what the keeper's starter starts.
Status Agent::Attach(const std::vector<int32_t>& pids) {
  finder_.Begin();
  if (pids.empty()) {
    const int32_t starter = ParentOf(getppid());
    UniqueFd pidfd = OpenPidfd(starter);
    if (starter > 1 && pidfd) AddRoot(starter, std::move(pidfd));
    return {};
  }
  if (!finder_.refusal().empty()) return Fail(ErrorCode::kPermission, finder_.refusal());
  for (const int32_t pid : pids) {
    UniqueFd pidfd = OpenPidfd(pid);
    if (!pidfd)
      return Fail(ErrorCode::kNotFound, "process " + std::to_string(pid) + ": is not there");
    AddRoot(pid, std::move(pidfd));
  }
  control_problem_ = {};
  finder_.LookAtMembers();
  for (const int32_t pid : pids) {
    if (finder_.ControlOf(pid) != 0) continue;
    const std::string why =
        control_problem_ ? "was not started with libweft.so in LD_PRELOAD and WEFT_DIR set, or "
                           "another session records it"
                         : control_problem_.error().message;
    return Fail(ErrorCode::kInvalid, "process " + std::to_string(pid) + ": " + why);
  }
  return {};
}

void Agent::Detach(const std::vector<int32_t>& pids) {
  for (const int32_t pid : pids) ToKeeper(ipc::Drop{kRootKey + std::to_string(pid)});
  finder_.RemoveRoots();
  while (!areas_.empty()) DropControl(areas_.begin()->first);
}

// The channel's ring sets are done with; processes that live on still map them.
void Agent::ForgetRings(SessionChannel& channel) {
  processes_.ForEachRing([&](const RingEntry& ring) {
    if (ring.channel_id == channel.definition.id) channel.accounted.insert(ring.instance);
  });
  processes_.DropChannel(channel.definition.id);
}

}  // namespace weft::agent
