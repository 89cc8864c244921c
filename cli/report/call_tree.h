// SPDX-License-Identifier: Apache-2.0
// Counts the calls of functions: how often each was called, how long its calls took, and in which
// calls. A call is added when it ends, so those that it contains come before it; the depths tell
// which ones these are. Memory is bounded, whatever a trace says. Thread-safety: one thread.
#ifndef WEFT_CLI_REPORT_CALL_TREE_H_
#define WEFT_CLI_REPORT_CALL_TREE_H_

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace weft::cli {

// Bounds of what a trace can make a report use: about 200 bytes a function or node, and one more
// for each kind of duration.
inline constexpr size_t kMaxReportFunctions = 65'536;
inline constexpr size_t kMaxReportNodes = 500'000;
// The levels of the tree, which is walked recursively; deeper calls are all on the last one.
inline constexpr uint32_t kMaxReportDepth = 1'024;

// Durations in classes whose width is 1/32 of their value: a percentile is at most 3 % too high.
class Durations {
 public:
  void Add(uint64_t ns);
  [[nodiscard]] uint64_t count() const { return count_; }
  [[nodiscard]] uint64_t min() const { return min_; }
  [[nodiscard]] uint64_t max() const { return max_; }
  // Returns the largest duration of the class in which that share of all ends, at most max().
  [[nodiscard]] uint64_t Percentile(double share) const;

 private:
  std::map<uint16_t, uint64_t> classes_;
  uint64_t count_ = 0, min_ = UINT64_MAX, max_ = 0;
};

// The calls of one function in one place of the tree.
struct CallNode {
  uint64_t calls = 0, total_ns = 0, self_ns = 0;
  int64_t last_end = INT64_MIN;
  std::map<uint32_t, std::unique_ptr<CallNode>> inner;  // by function
};
using CallNodes = std::map<uint32_t, std::unique_ptr<CallNode>>;

struct FunctionCalls {
  std::string name;
  Durations durations;      // of calls that ended
  uint64_t total_ns = 0;    // a call inside a call of the same function counts once; see Finish
  uint64_t self_ns = 0;     // without the recorded calls inside
  uint64_t unfinished = 0;  // calls that were entered, but have no exit
};

// What one thread has added, and no outer call has taken yet.
class ThreadCalls {
 private:
  friend class CallTree;
  // A call at `depth` ended. Returns the time of the calls right inside it that are too deep for
  // the tree.
  uint64_t TakeDeeper(uint32_t depth, uint64_t duration);

  std::vector<CallNodes> by_depth_;
  std::map<uint32_t, uint64_t> deeper_;  // time of calls, by their depth, beyond the tree
};

class CallTree {
 public:
  // Returns the number of a function. All functions beyond kMaxReportFunctions share one.
  uint32_t Function(std::string_view name);

  // A call of `function` ended. Times are in ns.
  void Add(ThreadCalls& thread, uint32_t function, uint32_t depth, int64_t begin, int64_t end);
  // A call was entered, but will have no end.
  void AddUnfinished(uint32_t function) { functions_[function].unfinished++; }
  // A thread has no more calls.
  void Finish(ThreadCalls& thread);
  // All threads have finished: computes the totals of functions.
  void Finish();

  [[nodiscard]] const std::deque<FunctionCalls>& functions() const { return functions_; }
  [[nodiscard]] const CallNodes& roots() const { return roots_; }
  // Calls that the tree does not show, because it would have become too large.
  [[nodiscard]] uint64_t left_out() const { return left_out_; }

 private:
  void Merge(std::unique_ptr<CallNode> from, uint32_t function, CallNodes& to);
  void Drop(const CallNode& node);
  void AddTotals(const CallNodes& nodes, std::vector<uint32_t>& open);

  std::unordered_map<std::string, uint32_t> numbers_;
  std::deque<FunctionCalls> functions_;
  CallNodes roots_;
  size_t nodes_ = 0;
  uint64_t left_out_ = 0;
};

}  // namespace weft::cli

#endif  // WEFT_CLI_REPORT_CALL_TREE_H_
