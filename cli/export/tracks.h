// SPDX-License-Identifier: Apache-2.0
// The rows of a timeline: pods, their processes, their threads, and CPUs, with the spans that are
// open on each. Called by the exporters for timelines. Thread-safety: one thread per object.
#ifndef WEFT_CLI_EXPORT_TRACKS_H_
#define WEFT_CLI_EXPORT_TRACKS_H_

#include <cstdint>
#include <deque>
#include <map>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "cli/export/subject.h"

namespace weft::cli {

// Spans of one track that are not over are at most so many; further ones are instants.
inline constexpr size_t kMaxOpenSpans = 1000;

enum class TrackKind : uint8_t { kPod, kProcess, kThread, kCpu, kCounter };

struct Track {
  uint64_t id = 0;  // from 1 on
  const Track* parent = nullptr;
  TrackKind kind = TrackKind::kPod;
  std::string name;
  std::vector<const std::string*> open;  // names of spans that have begun, the outermost first
};

class Tracks {
 public:
  // The track of an event: its thread's, or its CPU's where no context names the thread. Valid as
  // long as this object.
  Track& Of(const Subject& subject, const void* trace);
  // That of the CPU, for what the scheduler does.
  Track& OfCpu(const Subject& subject);
  // That of a counter of this event's process or CPU.
  Track& OfCounter(const Subject& subject, const void* trace, std::string_view counter);

  // Those that Of...() has made since the last call, parents first.
  std::vector<const Track*> TakeNew();

 private:
  Track& Find(TrackKind kind, const Track* parent, std::string_view name);
  Track& Pod(const Subject& subject);

  // What an event's track depends on, to find it without making its name.
  struct Key {
    const void* trace;
    int64_t pid, tid, cpu;
    std::string program;
    auto operator<=>(const Key&) const = default;
  };
  struct Last {
    Key key;
    Track* track = nullptr;
  };

  std::deque<Track> tracks_;
  std::map<std::pair<const Track*, std::string>, Track*> by_name_;
  std::map<Key, Track*> by_key_;
  Last last_;
  size_t taken_ = 0;
};

// What an event does to the spans of its track.
struct SpanChange {
  size_t ends = 0;       // innermost spans that end, the event's own last
  bool begins = false;   // a span of the event's name begins
  bool instant = false;  // neither: it is a moment
};

// Moves the track's open spans on. The end of a span that is not open is a moment; one of an outer
// span ends those within it, whose own ends are missing.
SpanChange Change(Track& track, const SpanName& span);

}  // namespace weft::cli

#endif  // WEFT_CLI_EXPORT_TRACKS_H_
