// SPDX-License-Identifier: Apache-2.0
// What an event says about itself beside its fields: which program, thread and CPU emitted it, and
// whether it begins or ends something. Called by the exporters. Thread-safety: one thread per
// object.
#ifndef WEFT_CLI_EXPORT_SUBJECT_H_
#define WEFT_CLI_EXPORT_SUBJECT_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>

#include "lib/ctf/decoder.h"
#include "lib/ctf/stream_reader.h"

namespace weft::cli {

// Which part of a span an event is.
enum class SpanEdge : uint8_t { kNone, kBegin, kEnd };

struct SpanName {
  SpanEdge edge = SpanEdge::kNone;
  std::string name;  // equal for both edges of a span; of kNone the event's name
};

// By the words of an event's name: "syscall_entry_read" begins and "syscall_exit_read" ends
// "syscall_read". The words are "entry" and "begin", and "exit", "return" and "end".
SpanName SpanOf(std::string_view event);

// The emitter of an event, as far as contexts and the trace's environment tell. Texts live as long
// as the reader's current item.
struct Subject {
  std::string_view host, kubernetes_namespace, pod, container, program;
  std::optional<int64_t> pid, tid, cpu;
  // The thread that gets the CPU, if this is the scheduler's event that says so.
  std::optional<int64_t> next_tid;
  std::string_view next_program;
};

class SubjectReader : private ctf::Visitor {
 public:
  // The subject of the stream's current event.
  const Subject& Read(ctf::StreamReader& stream);

 private:
  enum class Fact : uint8_t { kNone, kPid, kTid, kCpu, kProgram, kNextTid, kNextProgram };

  void Integer(const ctf::Type& type, uint64_t value) override;
  void Text(const ctf::Type& type, std::string_view text) override;
  void BeginMember(const ctf::Type& type, const ctf::Member& member) override;

  bool Switches(const ctf::EventRecordClass& event);
  const Subject& EnvironmentOf(const ctf::TraceClass& trace);

  std::unordered_map<const ctf::Member*, Fact> facts_;
  std::unordered_map<const ctf::EventRecordClass*, bool> switches_;
  std::unordered_map<const ctf::TraceClass*, Subject> environments_;
  Fact current_ = Fact::kNone;
  Subject subject_;
};

}  // namespace weft::cli

#endif  // WEFT_CLI_EXPORT_SUBJECT_H_
