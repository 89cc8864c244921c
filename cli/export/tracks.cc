// SPDX-License-Identifier: Apache-2.0
#include "cli/export/tracks.h"

#include <algorithm>
#include <utility>

namespace weft::cli {
namespace {

// "program (17)"; "process 17" where the program is unknown.
std::string NameOf(std::string_view kind, std::string_view program, int64_t number) {
  const std::string digits = std::to_string(number);
  if (program.empty()) return std::string(kind) + " " + digits;
  return std::string(program) + " (" + digits + ")";
}

constexpr int64_t kUnknown = -1;

}  // namespace

Track& Tracks::Find(TrackKind kind, const Track* parent, std::string_view name) {
  const auto [found, added] = by_name_.try_emplace({parent, std::string(name)});
  if (added) {
    tracks_.push_back(
        {.id = tracks_.size() + 1, .parent = parent, .kind = kind, .name = {}, .open = {}});
    tracks_.back().name = name;
    found->second = &tracks_.back();
  }
  return *found->second;
}

Track& Tracks::Pod(const Subject& subject) {
  if (subject.pod.empty()) {
    return Find(TrackKind::kPod, nullptr, subject.host.empty() ? "trace" : subject.host);
  }
  std::string name(subject.kubernetes_namespace);
  name.append("/").append(subject.pod);
  if (!subject.container.empty()) name.append("/").append(subject.container);
  return Find(TrackKind::kPod, nullptr, name);
}

Track& Tracks::OfCpu(const Subject& subject) {
  return Find(TrackKind::kCpu, &Pod(subject), "CPU " + std::to_string(subject.cpu.value_or(0)));
}

Track& Tracks::Of(const Subject& subject, const void* trace) {
  const int64_t pid = subject.pid.value_or(kUnknown);
  const int64_t tid = subject.tid.value_or(kUnknown);
  const int64_t cpu = pid == kUnknown && tid == kUnknown ? subject.cpu.value_or(0) : kUnknown;
  const Key& last = last_.key;
  if (last_.track != nullptr && last.trace == trace && last.pid == pid && last.tid == tid &&
      last.cpu == cpu && last.program == subject.program) {
    return *last_.track;
  }
  Key key{trace, pid, tid, cpu, std::string(subject.program)};
  const auto [found, added] = by_key_.try_emplace(key);
  if (added && cpu != kUnknown) {
    found->second = &OfCpu(subject);
  } else if (added) {
    Track* track = &Pod(subject);
    if (pid != kUnknown) {
      track = &Find(TrackKind::kProcess, track, NameOf("process", subject.program, pid));
    }
    if (tid != kUnknown) {
      track = &Find(TrackKind::kThread, track, NameOf("thread", subject.program, tid));
    }
    found->second = track;
  }
  last_ = {std::move(key), found->second};
  return *found->second;
}

Track& Tracks::OfCounter(const Subject& subject, const void* trace, std::string_view counter) {
  const Track* track = &Of(subject, trace);
  if (track->kind == TrackKind::kThread) track = track->parent;
  return Find(TrackKind::kCounter, track, counter);
}

std::vector<const Track*> Tracks::TakeNew() {
  std::vector<const Track*> fresh;
  for (; taken_ < tracks_.size(); taken_++) fresh.push_back(&tracks_[taken_]);
  return fresh;
}

SpanChange Change(Track& track, const SpanName& span) {
  auto& open = track.open;
  if (span.edge == SpanEdge::kBegin && open.size() < kMaxOpenSpans) {
    open.push_back(&span.name);
    return {.ends = 0, .begins = true, .instant = false};
  }
  if (span.edge == SpanEdge::kEnd) {
    const auto found = std::find_if(open.rbegin(), open.rend(),
                                    [&](const std::string* name) { return *name == span.name; });
    if (found != open.rend()) {
      const auto ends = static_cast<size_t>(found - open.rbegin()) + 1;
      open.resize(open.size() - ends);
      return {.ends = ends, .begins = false, .instant = false};
    }
  }
  return {.ends = 0, .begins = false, .instant = true};
}

}  // namespace weft::cli
