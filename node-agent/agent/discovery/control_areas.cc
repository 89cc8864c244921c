// SPDX-License-Identifier: Apache-2.0
// See control_areas.h.
#include "node-agent/agent/discovery/control_areas.h"

#include <unistd.h>

#include <cstdlib>
#include <utility>

#include "lib/base/copy_fd.h"
#include "node-agent/agent/base/limits.h"

namespace weft::agent {
namespace {

const std::string kAreaKey = "control/";

std::string KeyOf(uint64_t inode) { return kAreaKey + std::to_string(inode); }

}  // namespace

ControlAreas::ControlAreas(const control::AreaConfig& config, Finder& finder, InForce in_force,
                           Send keeper, Note note)
    : config_(config),
      finder_(finder),
      in_force_(std::move(in_force)),
      keeper_(std::move(keeper)),
      note_(std::move(note)) {}

Status ControlAreas::Open(const std::string& container, const std::string& path) {
  auto area = access(path.c_str(), F_OK) == 0 ? control::ControlArea::Open(path)
                                              : control::ControlArea::Create(path, config_);
  if (!area) return std::unexpected(area.error());
  // A file that is older than a reboot: rings are made as it says.
  if (files_.empty()) config_ = area->config();
  const auto [at, is_new] = files_.insert_or_assign(container, std::move(*area));
  finder_.AddControlFile(container, at->second.fd());
  return {};
}

void ControlAreas::Close(const std::string& container) {
  finder_.RemoveControlFile(container);
  std::vector<uint64_t> inodes;
  for (const auto& [inode, adopted] : adopted_)
    if (adopted.container == container) inodes.push_back(inode);
  files_.erase(container);
  for (const uint64_t inode : inodes) Drop(inode);
}

Status ControlAreas::Publish(const std::string& container) {
  const std::vector<control::ChannelSpec> channels = in_force_(container);
  std::map<uint64_t, std::string> failed;  // inode -> why
  for (auto& [inode, adopted] : adopted_) {
    if (adopted.container != container) continue;
    const Status published = adopted.area.Publish(channels);
    if (!published) failed[inode] = published.error().message;
  }
  const auto file = files_.find(container);
  const Status published = file == files_.end() ? Status{} : file->second.Publish(channels);
  for (const auto& [inode, why] : failed) {
    note_(why);
    Drop(inode);
  }
  return published;
}

void ControlAreas::PublishOrNote(const std::set<std::string>& containers) {
  for (const std::string& container : containers)
    if (const Status published = Publish(container); !published) note_(published.error().message);
}

std::string ControlAreas::WhyFull(const Mapper& of) const {
  size_t of_owner = 0, of_process = 0;
  for (const auto& [inode, adopted] : adopted_) {
    of_owner += !of.owner.empty() && adopted.of.owner == of.owner ? 1 : 0;
    of_process += of.pid != 0 && adopted.of.pid == of.pid ? 1 : 0;
  }
  if (of_process >= kMaxAdoptedOfProcess)
    return "process " + std::to_string(of.pid) + " has more than " +
           std::to_string(kMaxAdoptedOfProcess) + " control areas; the others are not used";
  const bool is_all = adopted_.size() >= kMaxAdoptedAreas;
  if (!is_all && of_owner < kMaxAdoptedOfOwner) return "";
  return "too many processes are recorded that way: " +
         (is_all ? std::to_string(kMaxAdoptedAreas) + " of this node"
                 : std::to_string(kMaxAdoptedOfOwner) + " of the namespace \"" + of.owner + "\"") +
         "; others follow when some of them have ended";
}

Status ControlAreas::Adopt(const std::string& container, uint64_t inode, UniqueFd fd,
                           const Mapper& of) {
  const auto refuse = [this](const Error& error) { return problem_ = std::unexpected(error); };
  if (const std::string why = WhyFull(of); !why.empty()) {
    if (full_.insert(of.owner).second) note_(why);
    return refuse(Fail(ErrorCode::kLimit, why).error());
  }
  auto area = control::ControlArea::Adopt(std::move(fd), config_);
  if (!area) return refuse(area.error());
  if (const Status published = area->Publish(in_force_(container)); !published)
    return refuse(published.error());
  const auto [at, is_new] =
      adopted_.insert_or_assign(inode, AdoptedArea{container, of, std::move(*area)});
  keeper_(ipc::Keep{KeyOf(inode), container, CopyFd(at->second.area.fd())});
  finder_.AddControl(inode);
  return {};
}

std::set<uint64_t> ControlAreas::AdoptedFor(const std::string& container) const {
  std::set<uint64_t> inodes;
  for (const auto& [inode, adopted] : adopted_)
    if (adopted.container == container) inodes.insert(inode);
  return inodes;
}

void ControlAreas::Drop(uint64_t inode) {
  keeper_(ipc::Drop{KeyOf(inode)});
  finder_.RemoveControl(inode);
  adopted_.erase(inode);
}

// After a start of the agent, a process that maps a kept area may not have been looked at yet.
void ControlAreas::DropUnmapped() {
  for (const uint64_t inode : finder_.UnmappedControls()) {
    const auto at = adopted_.find(inode);
    if (at != adopted_.end() && finder_.HasSeen(inode)) at->second.area.FreePages();
    Drop(inode);
  }
}

void ControlAreas::DropAdopted() {
  std::vector<uint64_t> inodes;
  inodes.reserve(adopted_.size());
  for (const auto& [inode, adopted] : adopted_) inodes.push_back(inode);
  for (const uint64_t inode : inodes) Drop(inode);
}

Status ControlAreas::LookForAreas() {
  problem_ = {};
  finder_.LookAtMembers();
  return problem_;
}

bool ControlAreas::TakeKept(ipc::Kept& kept) {
  if (!kept.key.starts_with(kAreaKey)) return false;
  kept_.push_back(std::move(kept));
  return true;
}

void ControlAreas::Restored() {
  for (ipc::Kept& kept : kept_) {
    const uint64_t inode = std::strtoull(kept.key.c_str() + kAreaKey.size(), nullptr, 10);
    if (!Adopt(kept.meta, inode, std::move(kept.fd), {})) keeper_(ipc::Drop{kept.key});
  }
  kept_.clear();
}

}  // namespace weft::agent
