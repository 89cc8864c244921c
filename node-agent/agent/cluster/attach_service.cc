// SPDX-License-Identifier: Apache-2.0
// See attach_service.h.
#include "node-agent/agent/cluster/attach_service.h"

#include <algorithm>
#include <utility>

#include "lib/base/background.h"
#include "lib/base/processes.h"
#include "node-agent/agent/base/limits.h"
#include "node-agent/agent/discovery/memory_maps.h"

namespace weft::agent {
namespace {

// "process 12 traces it": "a process traces it". So processes with the same reason are one group.
std::string WithoutIds(std::string why) {
  for (const std::string word : {"process", "thread"}) {
    for (size_t at = 0; (at = why.find(word + " ", at)) != std::string::npos; at += word.size()) {
      const size_t begin = at + word.size() + 1;
      const size_t end = std::min(why.find_first_not_of("0123456789", begin), why.size());
      if (end != begin) why.replace(at, end - at, "a " + word);
    }
  }
  return why;
}

bool Has(const std::vector<Mapping>& mappings, const std::string& text) {
  return std::ranges::any_of(mappings, [&](const Mapping& mapping) {
    return mapping.name.find(text) != std::string::npos;
  });
}

}  // namespace

AttachService::~AttachService() {
  if (!thread_.joinable()) return;
  {
    const std::lock_guard lock(mutex_);
    ends_ = true;
  }
  work_.End();
  wake_.notify_one();
  thread_.join();
}

void AttachService::SetContainers(std::map<std::string, std::string> containers) {
  {
    const std::lock_guard lock(mutex_);
    if (wanted_ == containers) return;
    for (const auto& [id, pod] : wanted_)
      if (!containers.contains(id)) left_out_.insert(id);
    wanted_ = std::move(containers);
    ++wanted_number_;
    settled_ = false;
  }
  if (!thread_.joinable()) thread_ = ThreadWithoutSignals([this] { Work(); });
  wake_.notify_one();
}

bool AttachService::is_settled() const {
  const std::lock_guard lock(mutex_);
  return settled_ && changed_.empty();
}

bool AttachService::is_done() const {
  const std::lock_guard lock(mutex_);
  return settled_ && changed_.empty() && !has_late_;
}

std::vector<int32_t> AttachService::TakeChanged() {
  const std::lock_guard lock(mutex_);
  return std::exchange(changed_, {});
}

std::map<std::string, AttachService::Outcome> AttachService::Outcomes() const {
  const std::lock_guard lock(mutex_);
  return outcomes_;
}

// --- the thread --------------------------------------------------------------------------------

void AttachService::Work() {
  uint64_t number = 0;
  int looks = 0;  // since the containers changed
  std::map<std::string, std::string> containers;
  for (;;) {
    bool all = false;
    std::set<std::string> left_out;
    {
      std::unique_lock lock(mutex_);
      const auto has_orders = [&] { return ends_ || number != wanted_number_; };
      if (wanted_.empty() && !work_.has_late())
        wake_.wait(lock, has_orders);
      else
        wake_.wait_for(lock, kAttachInterval, has_orders);
      if (ends_) return;
      all = number != wanted_number_;
      if (all) looks = 0;
      number = wanted_number_;
      containers = wanted_;
      left_out = std::exchange(left_out_, {});
    }
    Forget(left_out);
    Look(containers, all, number);
    Publish();
    const bool is_open = std::ranges::any_of(seen_, [](const auto& entry) {
      const Seen& seen = entry.second;
      return seen.place && !seen.has_library && seen.tries < kTriesUntilRefused;
    });
    if (is_open && ++looks < kLooksUntilAttached) continue;
    const std::lock_guard lock(mutex_);
    if (number == wanted_number_ && !std::exchange(settled_, true)) ++news_;
  }
}

void AttachService::Forget(const std::set<std::string>& containers) {
  std::erase_if(seen_, [&](const auto& entry) {
    return entry.second.place && containers.contains(entry.second.place->container_id);
  });
}

std::optional<CgroupPlace> AttachService::ServedPlace(
    int32_t pid, const std::map<std::string, std::string>& containers) const {
  auto place = place_of_(pid);
  if (!place) return std::nullopt;
  const auto found = containers.find(place->container_id);
  return found != containers.end() && found->second == place->pod_uid ? place : std::nullopt;
}

// `all`: also processes that were not in a container of before. `number`: of the orders. Newer ones
// end the look, since they may leave out containers.
void AttachService::Look(const std::map<std::string, std::string>& containers, bool all,
                         uint64_t number) {
  TakeLate();
  const std::vector<int32_t> alive = AllProcesses();
  std::erase_if(seen_,
                [&](const auto& entry) { return !std::ranges::binary_search(alive, entry.first); });
  with_library_ = 0;
  for (const auto& [pid, seen] : seen_) with_library_ += seen.has_library ? 1 : 0;
  for (const int32_t pid : alive) {
    Seen& seen = seen_[pid];
    // It enters its cgroup after its start.
    if (all || seen.place || seen.looks < kLooksAtNewProcess) {
      ++seen.looks;
      auto place = ServedPlace(pid, containers);
      if (place != seen.place) seen = {.looks = seen.looks, .place = std::move(place)};
    }
    if (seen.place) LookAt(pid, *seen.place, seen);
    // Its area is adopted at once.
    if (!newly_changed_.empty()) Publish();
    const std::lock_guard lock(mutex_);
    if (ends_ || number != wanted_number_) return;
  }
}

void AttachService::LookAt(int32_t pid, const CgroupPlace& place, Seen& seen) {
  const auto mappings = ReadMappings(pid, kMaxMapsBytes);
  if (!mappings || mappings->empty()) {  // it has ended
    seen.has_library = false;
    seen.tries = kTriesUntilRefused;
    seen.why.clear();
    return;
  }
  const uint64_t program = mappings->front().start ^ mappings->front().inode;
  if (std::exchange(seen.program, program) != program) {
    seen.is_loaded = false;
    seen.has_library = false;
    seen.tries = 0;
    seen.why.clear();
    seen.next_try = {};
  }
  // An agent that died may have left a part of it.
  const bool is_of_agent = Has(*mappings, "/memfd:libweft.so");
  const bool is_there = Has(*mappings, "libweft.so") && (seen.is_loaded || !is_of_agent);
  const bool had_library = std::exchange(seen.has_library, is_there);
  if (!seen.has_library && Clock::now() >= seen.next_try) Try(pid, place, seen);
  if (!seen.has_library || had_library) return;
  seen.why.clear();
  newly_changed_.push_back(pid);
  ++with_library_;
}

void AttachService::Try(int32_t pid, const CgroupPlace& place, Seen& seen) {
  if (work_.AnyLate([&](const CgroupPlace& late) { return late.pod_uid == place.pod_uid; })) return;
  const Status loaded =
      with_library_ < kMaxAttached
          ? LoadInto(pid, place)
          : Status(Fail(ErrorCode::kLimit, "weft is in " + std::to_string(kMaxAttached) +
                                               " processes of the namespace on this node: make the "
                                               "other pods anew with the label weft.dev/inject"));
  seen.is_loaded = seen.has_library = loaded.has_value();
  if (loaded) return;
  const auto pause = std::min<Clock::duration>(kAttachInterval * (1 << std::min(seen.tries, 10)),
                                               kLongestAttachPause);
  // What took longer than patience does not pass soon.
  seen.tries = work_.IsLate(pid) ? kTriesUntilRefused : seen.tries + 1;
  seen.next_try = Clock::now() + pause;
  // It ended, or executes another program, which is looked at then.
  seen.why = loaded.error().code == ErrorCode::kNotFound ? "" : loaded.error().message;
}

Status AttachService::LoadInto(int32_t pid, const CgroupPlace& place) {
  const auto outcome =
      work_.Do(pid, place, [load = load_, pid, place] { return load(pid, place); });
  if (outcome) return *outcome;
  return Fail(ErrorCode::kTimeout,
              "its files or its memory do not answer, as on a FUSE file system whose server hangs");
}

// A process whose thread ended after all is tried again, also if that thread loaded the library: it
// may have been given back since. If its container is served no more, it is not tried, and still
// told: also a load that failed may have changed it.
void AttachService::TakeLate() {
  for (const auto& [pid, place, outcome] : work_.TakeDone()) {
    newly_changed_.push_back(pid);
    const auto seen = seen_.find(pid);
    if (seen == seen_.end()) continue;
    seen->second.is_loaded = false;
    seen->second.next_try = {};
  }
}

// One refusal may pass: a process that is about to execute a program (vfork).
void AttachService::Publish() {
  std::map<std::string, Outcome> outcomes;
  for (const auto& [pid, seen] : seen_) {
    if (!seen.place) continue;
    Outcome& outcome = outcomes[seen.place->container_id];
    if (seen.has_library) ++outcome.with_library;
    if (!seen.why.empty() && seen.tries >= kTriesUntilRefused)
      ++outcome.refused[WithoutIds(seen.why)];
  }
  const std::lock_guard lock(mutex_);
  changed_.insert(changed_.end(), newly_changed_.begin(), newly_changed_.end());
  if (!newly_changed_.empty() || outcomes != outcomes_) ++news_;
  newly_changed_.clear();
  has_late_ = work_.has_late();
  outcomes_ = std::move(outcomes);
}

}  // namespace weft::agent
