// SPDX-License-Identifier: Apache-2.0
// See processes.h.
#include "node-agent/agent/discovery/processes.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>
#include <utility>

#include "lib/base/empty_input.h"
#include "lib/base/kill_point.h"
#include "lib/base/pidfd.h"
#include "lib/ring/ring_set.h"
#include "node-agent/agent/base/limits.h"
#include "node-agent/agent/discovery/memory_maps.h"

namespace weft::agent {
namespace {

using Json = nlohmann::json;

std::string ProcFile(int32_t pid, const char* name) {
  return "/proc/" + std::to_string(pid) + "/" + name;
}

std::string ReadComm(int32_t pid) {
  std::ifstream in(ProcFile(pid, "comm"));
  std::string name;
  std::getline(in, name);
  return name;
}

// Returns the most memory that its process can make it use; 0: it is no ring set.
uint64_t MostBytes(const UniqueFd& ring) {
  const auto g = ring::ReadGeometry(ring.get());
  return !g ? 0
            : weft_ring_set_bytes(g->descriptions_offset, g->descriptions_size, g->slot_count,
                                  g->slot_shift);
}

// Returns the memory that it uses now.
uint64_t UsedBytes(const UniqueFd& ring) {
  constexpr uint64_t kBlock = 512;  // of st_blocks
  struct stat st{};
  return fstat(ring.get(), &st) == 0 ? static_cast<uint64_t>(st.st_blocks) * kBlock : 0;
}

// Frees what was read, where a process maps it still.
void FreeRings(const UniqueFd& ring) {
  const auto g = ring::ReadGeometry(ring.get());
  if (g)
    (void)fallocate(ring.get(), FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
                    static_cast<off_t>(g->data_offset),
                    static_cast<off_t>(g->total_size - g->data_offset));
}

std::string PidfdKey(uint64_t number) { return "process/" + std::to_string(number); }

}  // namespace

// Returns the fourth word of stat, which follows the name in parentheses. The name may contain
// anything.
int32_t ParentOf(int32_t pid) {
  std::ifstream in(ProcFile(pid, "stat"));
  std::string line;
  std::getline(in, line);
  const size_t close = line.rfind(')');
  if (close == std::string::npos) return 0;
  std::istringstream rest(line.substr(close + 1));
  char state = 0;
  int32_t parent = 0;
  rest >> state >> parent;
  return parent;
}

// --- who it is -----------------------------------------------------------------------------------

ProcessEntry& Processes::ProcessOf(ipc::Arrived& arrived) {
  auto known = by_pid_.find(arrived.pid);
  if (known != by_pid_.end()) {
    ProcessEntry& process = processes_.at(known->second);
    const bool ended = !process.pidfd || HasEnded(process.pidfd);
    if (!ended && StillMaps(process, arrived.pid)) return process;
    MarkGone(process);
  }
  ProcessEntry process;
  process.number = next_number_++;
  process.pid = arrived.pid;
  process.uid = arrived.uid;
  process.pidfd = std::move(arrived.pidfd);
  if (process.pidfd && !HasEnded(process.pidfd)) {
    process.procname = ReadComm(process.pid);
    process.parent = ParentOf(process.pid);
  }
  ProcessEntry& entry = processes_[process.number] = std::move(process);
  by_pid_[entry.pid] = entry.number;
  KeepProcess(entry);
  return entry;
}

// If the agent may not look, the ring set counts as mapped. It is then read for too long rather
// than for too short a time.
bool Processes::StillMaps(const ProcessEntry& process, int32_t pid) const {
  const auto mappings = ReadMappings(pid, kMaxMapsBytes);
  if (!mappings || mappings->empty()) return pid == process.pid;
  std::set<std::pair<dev_t, ino_t>> mapped;
  for (const Mapping& mapping : *mappings) mapped.emplace(mapping.device, mapping.inode);
  for (const auto& [name, ring] : rings_) {
    struct stat st{};
    if (ring.process == process.number && fstat(ring.fd.get(), &st) == 0 &&
        mapped.contains({st.st_dev, st.st_ino}))
      return true;
  }
  return false;
}

void Processes::KeepProcess(const ProcessEntry& process) {
  const Json meta = {{"kind", "process"},  {"number", process.number},
                     {"pid", process.pid}, {"parent", process.parent},
                     {"uid", process.uid}, {"procname", process.procname}};
  UniqueFd fd;
  // A process that is gone has none; any descriptor stands for it.
  if (process.pidfd) {
    fd.reset(fcntl(process.pidfd.get(), F_DUPFD_CLOEXEC, 3));
  } else if (auto any = OpenEmptyInput()) {
    fd = std::move(*any);
  }
  keeper_(ipc::Keep{PidfdKey(process.number),
                    meta.dump(-1, ' ', false, Json::error_handler_t::replace), std::move(fd)});
}

// --- ring sets -----------------------------------------------------------------------------------

RingEntry* Processes::Adopt(ipc::Arrived& arrived, uint64_t channel_id, uint64_t instance) {
  if (rings_.contains({channel_id, instance})) return nullptr;
  ProcessEntry& process = ProcessOf(arrived);
  KillPoint("process_kept");
  if (process.rings >= kMaxRingsPerProcess) return nullptr;
  RingEntry& ring = rings_[{channel_id, instance}];
  const bool found = arrived.key.empty();
  ring = {found ? std::string(kFoundKey) + std::to_string(next_number_++) : arrived.key, channel_id,
          instance, process.number, std::move(arrived.fd)};
  ring.bytes = MostBytes(ring.fd);
  ++process.rings;
  const Json meta = {{"kind", "ring"},
                     {"channel", channel_id},
                     {"instance", instance},
                     {"process", process.number}};
  keeper_(ipc::Keep{ring.key, meta.dump(),
                    found ? UniqueFd(fcntl(ring.fd.get(), F_DUPFD_CLOEXEC, 3)) : UniqueFd()});
  KillPoint("ring_kept");
  return &ring;
}

void Processes::Restored() {
  // Processes whose last ring was dropped by an agent that died before it said so.
  std::erase_if(processes_, [&](const auto& entry) {
    if (entry.second.rings == 0) keeper_(ipc::Drop{PidfdKey(entry.first)});
    return entry.second.rings == 0;
  });
  for (auto& [number, process] : processes_) {
    if (!process.pidfd || HasEnded(process.pidfd)) {
      process.gone = true;
      for (auto& [name, ring] : rings_)
        if (ring.process == number) Shrink(ring, UsedBytes(ring.fd));
    } else {
      by_pid_[process.pid] = number;
      Watch(number);
    }
  }
}

bool Processes::Restore(ipc::Kept& kept) {
  const Json meta = Json::parse(kept.meta, nullptr, false);
  if (!meta.is_object()) return false;
  const std::string kind = meta.value("kind", "");
  if (kind == "process") {
    ProcessEntry& process = processes_[meta.value("number", uint64_t{0})];
    process.number = meta.value("number", uint64_t{0});
    process.pid = meta.value("pid", 0);
    process.parent = meta.value("parent", 0);
    process.uid = meta.value("uid", 0u);
    process.procname = meta.value("procname", "");
    process.pidfd = std::move(kept.fd);
    return true;
  }
  if (kind != "ring") return false;
  const uint64_t channel = meta.value("channel", uint64_t{0});
  const uint64_t instance = meta.value("instance", uint64_t{0});
  const uint64_t number = meta.value("process", uint64_t{0});
  RingEntry& ring = rings_[{channel, instance}];
  ring = {kept.key, channel, instance, number, std::move(kept.fd)};
  ring.bytes = MostBytes(ring.fd);
  ++processes_[number].rings;
  return true;
}

void Processes::Shrink(RingEntry& ring, uint64_t bytes) {
  const uint64_t before = ring.bytes;
  if (bytes >= before) return;
  ring.bytes = bytes;
  shrunk_(ring, before);
}

void Processes::MovedAway(uint64_t channel_id, uint64_t instance) {
  auto it = rings_.find({channel_id, instance});
  if (it != rings_.end()) Shrink(it->second, 0);
}

void Processes::Release(RingEntry& ring) {
  auto it = processes_.find(ring.process);
  if (it != processes_.end() && !it->second.gone) FreeRings(ring.fd);
  Shrink(ring, 0);
  keeper_(ipc::Drop{ring.key});
  KillPoint("ring_released");
  if (it == processes_.end() || --it->second.rings > 0) return;
  ProcessEntry& process = it->second;
  if (process.pidfd) loop_.Unwatch(process.pidfd.get());
  auto pid = by_pid_.find(process.pid);
  if (pid != by_pid_.end() && pid->second == process.number) by_pid_.erase(pid);
  keeper_(ipc::Drop{PidfdKey(process.number)});
  processes_.erase(it);
}

void Processes::Drop(uint64_t channel_id, uint64_t instance) {
  auto it = rings_.find({channel_id, instance});
  if (it == rings_.end()) return;
  Release(it->second);
  rings_.erase(it);
}

void Processes::DropChannel(uint64_t channel_id) {
  auto it = rings_.lower_bound({channel_id, 0});
  while (it != rings_.end() && it->first.first == channel_id) {
    Release(it->second);
    it = rings_.erase(it);
  }
}

// --- ends ----------------------------------------------------------------------------------------

void Processes::Watch(uint64_t number) {
  auto it = processes_.find(number);
  if (it == processes_.end() || it->second.watched || it->second.gone) return;
  ProcessEntry& process = it->second;
  process.watched = true;
  if (!process.pidfd || HasEnded(process.pidfd) ||
      !loop_.Watch(process.pidfd.get(), [this, number] { OnExit(number); }))
    OnExit(number);
}

void Processes::OnExit(uint64_t number) {
  auto it = processes_.find(number);
  if (it == processes_.end() || it->second.gone) return;
  ProcessEntry& process = it->second;
  const int32_t parent = process.parent;
  if (parent > 1 && StillMaps(process, parent) && process.pid != parent) {
    // It was a vfork's child (or its like): the memory is its parent's.
    if (process.pidfd) loop_.Unwatch(process.pidfd.get());
    by_pid_.erase(process.pid);
    process.pid = parent;
    process.parent = 0;
    process.pidfd = OpenPidfd(parent);
    by_pid_.try_emplace(parent, number);
    process.watched = false;
    KeepProcess(process);
    Watch(number);
    return;
  }
  MarkGone(process);
}

void Processes::MarkGone(ProcessEntry& process) {
  if (process.gone) return;
  KillPoint("process_gone");
  process.gone = true;
  if (process.pidfd) loop_.Unwatch(process.pidfd.get());
  auto pid = by_pid_.find(process.pid);
  if (pid != by_pid_.end() && pid->second == process.number) by_pid_.erase(pid);
  for (auto& [name, ring] : rings_)
    if (ring.process == process.number) Shrink(ring, UsedBytes(ring.fd));
  gone_(process);
}

// --- looking ------------------------------------------------------------------------------------

const ProcessEntry* Processes::Find(uint64_t number) const {
  auto it = processes_.find(number);
  return it == processes_.end() ? nullptr : &it->second;
}

const RingEntry* Processes::FindRing(uint64_t channel_id, uint64_t instance) const {
  auto it = rings_.find({channel_id, instance});
  return it == rings_.end() ? nullptr : &it->second;
}

size_t Processes::Alive() const {
  size_t alive = 0;
  for (const auto& [number, process] : processes_) alive += process.gone ? 0 : 1;
  return alive;
}

size_t Processes::RingsOf(uint64_t channel_id) const {
  size_t count = 0;
  for (const auto& [name, ring] : rings_) count += ring.channel_id == channel_id ? 1 : 0;
  return count;
}

void Processes::ForEachRing(const std::function<void(const RingEntry&)>& visit) const {
  for (const auto& [name, ring] : rings_) visit(ring);
}

void Processes::ForEachLeft(uint32_t looks, const std::function<void(const RingEntry&)>& visit) {
  for (auto& [number, process] : processes_) process.looks_since += process.gone ? 1 : 0;
  for (const auto& [name, ring] : rings_) {
    const auto process = processes_.find(ring.process);
    if (ring.bytes != 0 && process != processes_.end() && process->second.looks_since >= looks)
      visit(ring);
  }
}

void Processes::ForEachGone(const std::function<void(const ProcessEntry&)>& visit) const {
  for (const auto& [number, process] : processes_)
    if (process.gone) visit(process);
}

}  // namespace weft::agent
