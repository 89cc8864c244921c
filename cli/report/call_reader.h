// SPDX-License-Identifier: Apache-2.0
// Finds calls of functions in a trace: events "function:NAME_call", and pairs of
// "function:NAME_entry" and "function:NAME_exit" of one thread. An entry without an exit (an
// exception, a jump, the end of the recording) is an unfinished call. A call with all three events
// counts once. Foreign bytes: memory is
// bounded, whatever a trace says. Thread-safety: one thread.
#ifndef WEFT_CLI_REPORT_CALL_READER_H_
#define WEFT_CLI_REPORT_CALL_READER_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string_view>
#include <tuple>
#include <unordered_map>
#include <vector>

#include "cli/export/subject.h"
#include "cli/report/call_tree.h"
#include "lib/ctf/stream_reader.h"

namespace weft::cli {

// Threads of which calls can be open, and their open calls all together: 24 bytes each.
inline constexpr size_t kMaxReportThreads = 65'536;
inline constexpr size_t kMaxOpenCalls = size_t{1} << 20;

enum class CallMoment : uint8_t { kNone, kEntry, kExit, kCall };

// Which moment of which function an event is; kNone: it is no function's.
struct CallName {
  CallMoment moment = CallMoment::kNone;
  std::string_view function;
};
CallName CallNameOf(std::string_view event);

class CallReader {
 public:
  explicit CallReader(CallTree& tree) : tree_(tree) {}

  // The stream's current item, an event.
  void Take(ctf::StreamReader& stream);
  // The trace is over.
  void Finish();

  [[nodiscard]] uint64_t calls() const { return calls_; }  // that ended
  [[nodiscard]] uint64_t unfinished() const { return unfinished_; }
  [[nodiscard]] uint64_t without_entry() const { return without_entry_; }  // exits
  [[nodiscard]] uint64_t left_out() const { return left_out_; }            // beyond the limits
  // Was there an event that does not say which thread it is of?
  [[nodiscard]] bool lacks_thread() const { return lacks_thread_; }
  [[nodiscard]] size_t threads() const { return threads_.size(); }

 private:
  struct Class {
    CallMoment moment = CallMoment::kNone;
    uint32_t function = 0;
  };
  struct OpenCall {
    uint32_t function, depth;
    int64_t begin;
  };
  // The thread's event before this one, if it was an exit. An event of the whole call may follow.
  struct Ended {
    uint32_t function;
    std::optional<uint64_t> depth;
    bool had_entry;
  };
  struct Thread {
    std::vector<OpenCall> open;
    std::optional<Ended> ended;
    ThreadCalls calls;
  };
  using ThreadKey = std::tuple<const void*, int64_t, int64_t>;  // trace, process, thread

  const Class& ClassOf(const ctf::EventRecordClass& event);
  Thread* ThreadOf(ctf::StreamReader& stream);
  void Enter(Thread& thread, uint32_t function, std::optional<uint64_t> depth, int64_t time);
  // Returns whether there was an entry.
  bool Exit(Thread& thread, uint32_t function, std::optional<uint64_t> depth, int64_t time);
  // Removes open calls until `count` are left.
  void Leave(Thread& thread, size_t count);

  CallTree& tree_;
  SubjectReader subjects_;
  std::unordered_map<const ctf::EventRecordClass*, Class> classes_;
  std::map<ThreadKey, Thread> threads_;
  size_t open_ = 0;
  uint64_t calls_ = 0, unfinished_ = 0, without_entry_ = 0, left_out_ = 0;
  bool lacks_thread_ = false;
};

}  // namespace weft::cli

#endif  // WEFT_CLI_REPORT_CALL_READER_H_
