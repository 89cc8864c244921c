// SPDX-License-Identifier: Apache-2.0
// See call_tree.h.
#include "cli/report/call_tree.h"

#include <algorithm>
#include <bit>
#include <cmath>

namespace weft::cli {
namespace {

constexpr unsigned kClassBits = 5;  // 32 classes for each power of two

uint16_t ClassOf(uint64_t ns) {
  if (ns < (1U << kClassBits)) return static_cast<uint16_t>(ns);
  const auto shift = static_cast<unsigned>(std::bit_width(ns)) - 1 - kClassBits;
  return static_cast<uint16_t>((shift << kClassBits) + (ns >> shift));
}

// Returns the largest duration of a class.
uint64_t EndOf(uint16_t number) {
  if (number < (2U << kClassBits)) return number;
  const unsigned shift = (number >> kClassBits) - 1;
  const uint64_t first = (number & ((1U << kClassBits) - 1)) + (1U << kClassBits);
  return (first << shift) + ((uint64_t{1} << shift) - 1);
}

// The difference of two int64 fits into uint64.
uint64_t Difference(int64_t begin, int64_t end) {
  return end <= begin ? 0 : static_cast<uint64_t>(end) - static_cast<uint64_t>(begin);
}

// Sums of hostile durations stay at the largest number.
void AddTo(uint64_t& sum, uint64_t more) {
  sum = more > UINT64_MAX - sum ? UINT64_MAX : sum + more;
}

// The outer call's begin is computed from its duration, and is too late if the thread recorded the
// call long after its end: it waited, or it was the first event of the function. An inner call that
// seems to have ended before is taken for one of this call if it fits into its time.
constexpr uint64_t kLateRecord = 10'000'000;
constexpr uint64_t kClockDifference = 1'000;  // between an event's clock and that of durations

// `left_ns`: time of the outer call without the inner calls that it has already.
bool IsInside(const CallNode& node, int64_t begin, uint64_t left_ns) {
  const uint64_t gap = Difference(node.last_end, begin);
  return gap <= kClockDifference || (gap <= kLateRecord && node.total_ns <= left_ns);
}

}  // namespace

void Durations::Add(uint64_t ns) {
  classes_[ClassOf(ns)]++;
  count_++;
  min_ = std::min(min_, ns);
  max_ = std::max(max_, ns);
}

uint64_t Durations::Percentile(double share) const {
  const auto wanted =
      std::max<uint64_t>(1, static_cast<uint64_t>(std::ceil(share * static_cast<double>(count_))));
  uint64_t seen = 0;
  for (const auto& [number, count] : classes_) {
    seen += count;
    if (seen >= wanted) return std::clamp(EndOf(number), min_, max_);
  }
  return max_;
}

uint32_t CallTree::Function(std::string_view name) {
  if (functions_.size() >= kMaxReportFunctions) name = "(other functions)";
  const auto [found, added] = numbers_.try_emplace(std::string(name), functions_.size());
  if (added) functions_.push_back({.name = std::string(name), .durations = {}});
  return found->second;
}

void CallTree::Add(ThreadCalls& thread, uint32_t function, uint32_t depth, int64_t begin,
                   int64_t end) {
  const uint64_t duration = Difference(begin, end);
  auto node = std::make_unique<CallNode>();
  *node = {.calls = 1, .total_ns = duration, .self_ns = duration, .last_end = end};
  nodes_++;
  std::vector<CallNodes>& pending = thread.by_depth_;
  // What is deeper has ended, and lies in this call or in one that never ended.
  while (pending.size() > size_t{depth} + 1) {
    CallNodes inner = std::move(pending.back());
    pending.pop_back();
    for (auto& [number, child] : inner) {
      if (!IsInside(*child, begin, node->self_ns)) {
        Merge(std::move(child), number, roots_);
        continue;
      }
      node->self_ns -= std::min(node->self_ns, child->total_ns);
      Merge(std::move(child), number, node->inner);
    }
  }
  const uint64_t deeper = thread.TakeDeeper(depth, duration);
  if (depth >= kMaxReportDepth) {
    // The tree has all of these calls on its last level, each without those inside.
    node->self_ns -= std::min(node->self_ns, deeper);
    node->total_ns = node->self_ns;
  }
  FunctionCalls& of = functions_[function];
  of.durations.Add(duration);
  AddTo(of.self_ns, node->self_ns);
  if (depth == 0) {
    pending.clear();
    return Merge(std::move(node), function, roots_);
  }
  const size_t level = std::min(depth, kMaxReportDepth);
  pending.resize(std::max(pending.size(), level + 1));
  Merge(std::move(node), function, pending[level]);
}

uint64_t ThreadCalls::TakeDeeper(uint32_t depth, uint64_t duration) {
  uint64_t sum = 0;
  for (auto at = deeper_.upper_bound(depth); at != deeper_.end(); at = deeper_.erase(at))
    AddTo(sum, at->second);
  if (depth >= kMaxReportDepth) {
    AddTo(deeper_[depth], duration);
    if (deeper_.size() > kMaxReportNodes) deeper_.erase(deeper_.begin());
  }
  return sum;
}

void CallTree::Finish(ThreadCalls& thread) {
  for (CallNodes& nodes : thread.by_depth_)
    for (auto& [number, node] : nodes) Merge(std::move(node), number, roots_);
  thread.by_depth_.clear();
}

// `from` is counted in nodes_.
void CallTree::Merge(std::unique_ptr<CallNode> from, uint32_t function, CallNodes& to) {
  const auto found = to.find(function);
  if (found == to.end()) {
    if (nodes_ > kMaxReportNodes) return Drop(*from);
    to.emplace(function, std::move(from));
    return;
  }
  CallNode* place = found->second.get();
  AddTo(place->calls, from->calls);
  AddTo(place->total_ns, from->total_ns);
  AddTo(place->self_ns, from->self_ns);
  place->last_end = std::max(place->last_end, from->last_end);
  CallNodes inner = std::move(from->inner);
  nodes_--;
  for (auto& [number, node] : inner) Merge(std::move(node), number, place->inner);
}

void CallTree::Drop(const CallNode& node) {
  nodes_--;
  AddTo(left_out_, node.calls);
  for (const auto& [number, inner] : node.inner) Drop(*inner);
}

void CallTree::Finish() {
  for (FunctionCalls& function : functions_) function.total_ns = 0;
  std::vector<uint32_t> open(functions_.size());
  AddTotals(roots_, open);
}

void CallTree::AddTotals(const CallNodes& nodes, std::vector<uint32_t>& open) {
  for (const auto& [number, node] : nodes) {
    if (open[number]++ == 0) AddTo(functions_[number].total_ns, node->total_ns);
    AddTotals(node->inner, open);
    open[number]--;
  }
}

}  // namespace weft::cli
