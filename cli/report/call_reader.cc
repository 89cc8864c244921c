// SPDX-License-Identifier: Apache-2.0
// See call_reader.h.
#include "cli/report/call_reader.h"

#include <algorithm>
#include <array>
#include <limits>
#include <utility>

namespace weft::cli {
namespace {

constexpr std::string_view kPrefix = "function:";
constexpr std::array<std::pair<std::string_view, CallMoment>, 3> kSuffixes = {
    {{"_entry", CallMoment::kEntry}, {"_exit", CallMoment::kExit}, {"_call", CallMoment::kCall}}};

// Finds the last fields of the names that weft adds: arguments of these names come before.
class CallFields final : public ctf::Visitor {
 public:
  void BeginMember(const ctf::Type&, const ctf::Member& member) override {
    into_ = member.name == "depth" ? &depth : member.name == "duration" ? &duration : nullptr;
  }
  void Integer(const ctf::Type&, uint64_t value) override {
    if (into_ != nullptr) *into_ = value;
    into_ = nullptr;
  }

  std::optional<uint64_t> depth, duration;

 private:
  std::optional<uint64_t>* into_ = nullptr;
};

uint32_t Bounded(uint64_t depth) {
  return static_cast<uint32_t>(std::min<uint64_t>(depth, std::numeric_limits<uint32_t>::max()));
}

// Returns the time `duration` before `end`, at the earliest the first there is.
int64_t Before(int64_t end, uint64_t duration) {
  const uint64_t most =
      static_cast<uint64_t>(end) - static_cast<uint64_t>(std::numeric_limits<int64_t>::min());
  return static_cast<int64_t>(static_cast<uint64_t>(end) - std::min(duration, most));
}

}  // namespace

CallName CallNameOf(std::string_view event) {
  if (!event.starts_with(kPrefix)) return {};
  event.remove_prefix(kPrefix.size());
  for (const auto& [suffix, moment] : kSuffixes)
    if (event.ends_with(suffix)) return {moment, event.substr(0, event.size() - suffix.size())};
  return {};
}

const CallReader::Class& CallReader::ClassOf(const ctf::EventRecordClass& event) {
  const auto [found, added] = classes_.try_emplace(&event);
  if (!added) return found->second;
  const CallName name = CallNameOf(event.name);
  found->second.moment = name.moment;
  if (name.moment != CallMoment::kNone) found->second.function = tree_.Function(name.function);
  return found->second;
}

CallReader::Thread* CallReader::ThreadOf(ctf::StreamReader& stream) {
  const Subject& subject = subjects_.Read(stream);
  if (!subject.tid) lacks_thread_ = true;
  const ThreadKey key(&stream.trace(), subject.pid.value_or(0), subject.tid.value_or(0));
  const auto found = threads_.find(key);
  if (found != threads_.end()) return &found->second;
  if (threads_.size() >= kMaxReportThreads) return nullptr;
  return &threads_[key];
}

void CallReader::Take(ctf::StreamReader& stream) {
  const ctf::Item& item = stream.item();
  const Class& known = ClassOf(*item.event);
  if (known.moment == CallMoment::kNone || item.time_ns == ctf::kNoTime) return;
  CallFields fields;
  (void)stream.Visit(ctf::Scope::kPayload, fields);
  Thread* thread = ThreadOf(stream);
  if (thread == nullptr) {
    left_out_++;
    return;
  }
  const std::optional<Ended> before = std::exchange(thread->ended, std::nullopt);
  switch (known.moment) {
    case CallMoment::kNone:
      return;
    case CallMoment::kEntry:
      return Enter(*thread, known.function, fields.depth, item.time_ns);
    case CallMoment::kExit: {
      const bool had_entry = Exit(*thread, known.function, fields.depth, item.time_ns);
      if (!had_entry) without_entry_++;
      thread->ended = Ended{known.function, fields.depth, had_entry};
      return;
    }
    case CallMoment::kCall:
      if (before && before->function == known.function && before->depth == fields.depth) {
        if (before->had_entry) return;
        without_entry_--;
      }
      calls_++;
      tree_.Add(thread->calls, known.function, Bounded(fields.depth.value_or(0)),
                Before(item.time_ns, fields.duration.value_or(0)), item.time_ns);
  }
}

void CallReader::Leave(Thread& thread, size_t count) {
  while (thread.open.size() > count) {
    tree_.AddUnfinished(thread.open.back().function);
    thread.open.pop_back();
    unfinished_++;
    open_--;
  }
}

void CallReader::Enter(Thread& thread, uint32_t function, std::optional<uint64_t> depth,
                       int64_t time) {
  if (depth) {
    size_t around = thread.open.size();
    while (around > 0 && thread.open[around - 1].depth >= *depth) around--;
    Leave(thread, around);
  }
  if (open_ >= kMaxOpenCalls) {
    left_out_++;
    return;
  }
  open_++;
  thread.open.push_back({function, Bounded(depth.value_or(thread.open.size())), time});
}

bool CallReader::Exit(Thread& thread, uint32_t function, std::optional<uint64_t> depth,
                      int64_t time) {
  size_t at = thread.open.size();
  while (at > 0 && (thread.open[at - 1].function != function ||
                    (depth && thread.open[at - 1].depth != Bounded(*depth))))
    at--;
  if (at == 0) return false;
  Leave(thread, at);
  const OpenCall call = thread.open.back();
  thread.open.pop_back();
  open_--;
  calls_++;
  tree_.Add(thread.calls, function, call.depth, call.begin, time);
  return true;
}

void CallReader::Finish() {
  for (auto& [key, thread] : threads_) {
    Leave(thread, 0);
    tree_.Finish(thread.calls);
  }
  tree_.Finish();
}

}  // namespace weft::cli
