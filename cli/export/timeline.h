// SPDX-License-Identifier: Apache-2.0
// What both exporters for timelines do with an event before they write it: its track, its span and
// the counter that it is a value of. Thread-safety: one thread per object.
#ifndef WEFT_CLI_EXPORT_TIMELINE_H_
#define WEFT_CLI_EXPORT_TIMELINE_H_

#include <cstdint>
#include <optional>
#include <string>
#include <unordered_map>

#include "cli/export/exporter.h"
#include "cli/export/subject.h"
#include "cli/export/tracks.h"

namespace weft::cli {

struct Moment {
  Track* track = nullptr;
  SpanChange change;
  const std::string* name = nullptr;  // of the span or event; lives as long as the timeline
  // A counter's new value.
  Track* counter = nullptr;
  double value = 0;
  // The CPU's track, where the scheduler gave the CPU to another thread, and that thread's name,
  // empty for the idle one; a span of it ends first, if one is open.
  Track* cpu = nullptr;
  bool cpu_was_busy = false;
  std::string running;
};

class Timeline {
 public:
  explicit Timeline(const CounterFields& counters) : counters_(counters) {}

  // What the stream's current event adds to the timeline.
  Moment Take(ctf::StreamReader& stream);

  std::vector<const Track*> TakeNewTracks() { return tracks_.TakeNew(); }

 private:
  struct Class {
    SpanName span;
    std::string counter;  // "event.field"; empty: the event is no counter's
    std::string field;
  };
  Class& ClassOf(const ctf::EventRecordClass& event);
  void TakeSwitch(const Subject& subject, Moment& moment);

  CounterFields counters_;
  SubjectReader subjects_;
  Tracks tracks_;
  std::unordered_map<const ctf::EventRecordClass*, Class> classes_;
};

}  // namespace weft::cli

#endif  // WEFT_CLI_EXPORT_TIMELINE_H_
