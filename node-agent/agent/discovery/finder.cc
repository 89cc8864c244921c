// SPDX-License-Identifier: Apache-2.0
// See finder.h.
#include "node-agent/agent/discovery/finder.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <sstream>

#include "lib/abi/control.h"
#include "lib/base/copy_fd.h"
#include "lib/base/pidfd.h"
#include "lib/base/processes.h"
#include "node-agent/agent/base/limits.h"

namespace weft::agent {
namespace {

constexpr std::string_view kRingName = "/memfd:" WEFT_RING_MEMFD_NAME " (deleted)";
constexpr std::string_view kControlName = "/memfd:" WEFT_CONTROL_MEMFD_NAME " (deleted)";
// Anonymous shared memory. Its size, and then its header, tell whether it is a control area.
constexpr std::string_view kAnonymousName = "/dev/zero (deleted)";

std::vector<int32_t> ChildrenOf(int32_t pid) {
  std::vector<int32_t> children;
  const std::string tasks = "/proc/" + std::to_string(pid) + "/task";
  for (const int32_t tid : IdsIn(tasks)) {
    std::ifstream in(tasks + "/" + std::to_string(tid) + "/children");
    for (int32_t child = 0; in >> child;) children.push_back(child);
  }
  return children;
}

// Returns the effective user id, as SO_PEERCRED does.
uint32_t UidOf(int32_t pid) {
  std::ifstream in("/proc/" + std::to_string(pid) + "/status");
  for (std::string line; std::getline(in, line);) {
    if (!line.starts_with("Uid:")) continue;
    std::istringstream words(line.substr(4));
    uint32_t real = 0, effective = 0;
    words >> real >> effective;
    return effective;
  }
  return 0;
}

// Returns the agent, the keeper and the keeper's other children. A consumer maps ring sets, for a
// while even those that it has finished, so it must not count as a process that maps them.
std::set<int32_t> OwnProcesses() {
  std::set<int32_t> own{getpid(), getppid()};
  for (const int32_t child : ChildrenOf(getppid())) own.insert(child);
  return own;
}

// Returns how /proc/self/maps shows a mapped file. This differs from stat(2) on some file systems
// (overlay, btrfs).
std::optional<Mapping> AsMapped(const UniqueFd& file) {
  const auto size = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  void* memory = mmap(nullptr, size, PROT_READ, MAP_SHARED, file.get(), 0);
  if (memory == MAP_FAILED) return std::nullopt;
  std::optional<Mapping> found;
  const auto mappings = ReadMappings(getpid(), kMaxMapsBytes);
  for (size_t i = 0; mappings && i < mappings->size(); ++i)
    if ((*mappings)[i].start == reinterpret_cast<uintptr_t>(memory)) found = (*mappings)[i];
  munmap(memory, size);
  return found;
}

}  // namespace

// The constructor tries this on memory of its own.
Finder::Finder(Handler handler) : handler_(std::move(handler)) {
  const UniqueFd fd(memfd_create("weft-trial", MFD_CLOEXEC));
  struct stat st{};
  const auto size = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  if (!fd || fstat(fd.get(), &st) != 0 || ftruncate(fd.get(), static_cast<off_t>(size)) != 0) {
    refusal_ = "no memory";
    return;
  }
  device_ = st.st_dev;
  void* memory = mmap(nullptr, size, PROT_READ, MAP_SHARED, fd.get(), 0);
  if (memory == MAP_FAILED) {
    refusal_ = "no memory";
    return;
  }
  const auto start = reinterpret_cast<uintptr_t>(memory);
  const auto opened = OpenMapping(
      getpid(),
      {.start = start, .end = start + size, .device = st.st_dev, .inode = st.st_ino, .name = ""});
  munmap(memory, size);
  if (!opened) refusal_ = "opening another process's memory needs root (CAP_CHECKPOINT_RESTORE)";
}

void Finder::AddControlFile(const std::string& name, const UniqueFd& file) {
  RemoveControlFile(name);
  const auto mapped = AsMapped(file);
  if (!mapped) return;
  files_[name] = {.id = {mapped->device, mapped->inode}};
  name_of_[files_[name].id] = name;
}

void Finder::RemoveControlFile(const std::string& name) {
  const auto found = files_.find(name);
  if (found == files_.end()) return;
  name_of_.erase(found->second.id);
  files_.erase(found);
}

Finder::Sight Finder::SightOf(const std::string& name) const {
  const auto found = files_.find(name);
  if (found == files_.end()) return Sight::kUnknown;
  const ControlFile& file = found->second;
  if (file.rounds_without >= kRoundsWithoutLibrary) return Sight::kMissing;
  return file.mapped ? Sight::kMapped : Sight::kUnknown;
}

void Finder::AddRoot(int32_t pid, UniqueFd pidfd) { roots_.push_back({pid, std::move(pidfd)}); }

void Finder::Know(const UniqueFd& memory) {
  struct stat st{};
  if (fstat(memory.get(), &st) != 0 || st.st_dev != device_) return;
  known_[st.st_ino] = {.seen = round_, .final = true};
}

// --- rounds --------------------------------------------------------------------------------------

void Finder::Begin() {
  for (const int32_t pid : AllProcesses()) rounds_of_[pid] = kRoundsOfNewProcesses;
}

void Finder::LookAtMembers() { Look(false); }
void Finder::LookAtAll() { Look(true); }

void Finder::Look(bool all) {
  if (!refusal_.empty()) return;
  ++round_;
  const std::vector<int32_t> pids = AllProcesses();
  std::set<int32_t> alive(pids.begin(), pids.end());
  for (const int32_t own : OwnProcesses()) alive.erase(own);
  std::erase_if(rounds_of_, [&](const auto& entry) { return !alive.contains(entry.first); });
  std::erase_if(file_of_, [&](auto& entry) { return !alive.contains(entry.first); });
  std::erase_if(roots_, [](const Root& root) { return HasEnded(root.pidfd); });
  for (const Root& root : roots_) members_.insert(root.pid);
  AddDescendants(alive);
  CountRound();
  for (const int32_t pid : alive) {
    const bool is_new = rounds_of_[pid]++ < kRoundsOfNewProcesses;
    if (is_new && membership_) {
      if (auto file = membership_(pid)) {
        members_.insert(pid);
        file_of_.insert_or_assign(pid, std::move(*file));
      }
    }
    const bool is_member = members_.contains(pid);
    if (all || is_new || is_member) LookAt(pid, is_member);
  }
  std::erase_if(known_, [this](const auto& entry) {
    return entry.second.seen + kRoundsUnmapped < round_ && !controls_.contains(entry.first);
  });
}

// Counts a round for all memory; processes that map it in this round set the count back.
void Finder::CountRound() {
  std::set<std::string_view> expected;
  for (const auto& [pid, name] : file_of_) expected.insert(name);
  for (auto& [name, file] : files_)
    if (expected.contains(name)) ++file.rounds_without;
}

// Removes members that have ended and adds the children of members.
void Finder::AddDescendants(const std::set<int32_t>& alive) {
  std::erase_if(members_, [&](int32_t pid) { return !alive.contains(pid); });
  std::vector<int32_t> to_visit(members_.begin(), members_.end());
  while (!to_visit.empty()) {
    const int32_t pid = to_visit.back();
    to_visit.pop_back();
    for (const int32_t child : ChildrenOf(pid))
      if (alive.contains(child) && members_.insert(child).second) to_visit.push_back(child);
  }
}

std::vector<uint64_t> Finder::UnmappedControls() const {
  std::vector<uint64_t> unmapped;
  for (const uint64_t inode : controls_) {
    const auto known = known_.find(inode);
    if (known == known_.end() || known->second.seen + kRoundsUnmapped < round_)
      unmapped.push_back(inode);
  }
  return unmapped;
}

// --- one process ---------------------------------------------------------------------------------

bool Finder::IsRing(const Mapping& mapping) const {
  return mapping.device == device_ && mapping.name == kRingName;
}

bool Finder::IsControl(const Mapping& mapping) const {
  return mapping.device == device_ && mapping.end - mapping.start == WEFT_CONTROL_TOTAL_BYTES &&
         (mapping.name == kControlName || mapping.name == kAnonymousName);
}

// Notes that the memory is mapped. A control area decides what its process records, so only a
// member's is wanted.
bool Finder::Wants(const Mapping& mapping, bool is_member) {
  const bool is_control = IsControl(mapping);
  if (is_control ? !is_member : !IsRing(mapping)) return false;
  Known& known = known_[mapping.inode];
  known.seen = round_;
  return !known.final;
}

void Finder::NoteLibrary(const std::string& name) {
  const auto found = files_.find(name);
  if (found == files_.end()) return;
  found->second.mapped = true;
  found->second.rounds_without = 0;
}

void Finder::LookAt(int32_t pid, bool is_member) {
  const auto mappings = ReadMappings(pid, kMaxMapsBytes);
  if (!mappings) return;
  bool any = false;
  const auto expected = file_of_.find(pid);
  for (const Mapping& mapping : *mappings) {
    const auto name = name_of_.find({mapping.device, mapping.inode});
    if (name != name_of_.end()) {
      NoteLibrary(name->second);
    } else if (expected != file_of_.end() && (IsRing(mapping) || IsControl(mapping))) {
      // A process that began before its control file was there has a control area of its own.
      NoteLibrary(expected->second);
    }
    if (name != name_of_.end() || (IsControl(mapping) && controls_.contains(mapping.inode))) {
      members_.insert(pid);
      is_member = true;
    }
  }
  for (const Mapping& mapping : *mappings) any |= Wants(mapping, is_member);
  if (any) OpenNew(pid, is_member);
}

// Looks once more, now with a pidfd: what is found between its opening and the look at whether the
// process still lives is that process's.
void Finder::OpenNew(int32_t pid, bool is_member) {
  const UniqueFd pidfd = OpenPidfd(pid);
  const auto mappings = ReadMappings(pid, kMaxMapsBytes);
  if (!pidfd || !mappings) return;
  size_t opened = 0;
  for (const Mapping& mapping : *mappings) {
    if (!Wants(mapping, is_member)) continue;
    if (++opened > kMaxOpenedPerLook) return;
    FoundMemory found{.is_control = IsControl(mapping),
                      .inode = mapping.inode,
                      .pid = pid,
                      .uid = UidOf(pid),
                      .fd = {},
                      .pidfd = CopyFd(pidfd)};
    auto fd = OpenMapping(pid, mapping);
    if (!fd || HasEnded(pidfd)) continue;
    found.fd = std::move(*fd);
    const Verdict verdict = handler_(std::move(found));
    Known& known = known_[mapping.inode];
    if (verdict == Verdict::kLater) continue;
    known.final = verdict == Verdict::kKnown || ++known.tries >= kTriesOfUnfinished;
  }
}

uint64_t Finder::ControlOf(int32_t pid) const {
  const auto mappings = ReadMappings(pid, kMaxMapsBytes);
  for (size_t i = 0; mappings && i < mappings->size(); ++i)
    if (IsControl((*mappings)[i]) && controls_.contains((*mappings)[i].inode))
      return (*mappings)[i].inode;
  return 0;
}

}  // namespace weft::agent
