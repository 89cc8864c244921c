// SPDX-License-Identifier: Apache-2.0
// Exports to the JSON of Chrome's trace viewer, the "Trace Event Format", which Perfetto and
// Speedscope read, too. Its times are microseconds with three digits behind the point, since the
// first event: as doubles, which viewers take them for, times since the epoch would lose their
// nanoseconds. otherData says when that was.
#include <array>
#include <cinttypes>
#include <cstdio>

#include "cli/export/exporter.h"
#include "cli/export/timeline.h"
#include "cli/json_printer.h"
#include "cli/view_json.h"

namespace weft::cli {
namespace {

// The viewer has two levels: the process of a track is its parent's, or the track itself.
uint64_t ProcessOf(const Track& track) {
  return track.parent == nullptr || track.kind == TrackKind::kProcess ? track.id : track.parent->id;
}

class ChromeJsonExporter : public Exporter {
 public:
  explicit ChromeJsonExporter(const CounterFields& counters) : timeline_(counters) {}

  void Begin(std::string& out) override {
    out += "{\"displayTimeUnit\":\"ns\",\"traceEvents\":[\n";
  }

  void Item(ctf::StreamReader& stream, std::string& out) override {
    const ctf::Item& item = stream.item();
    if (item.kind != ctf::ItemKind::kEvent || item.time_ns == ctf::kNoTime) return;
    if (!first_ns_) first_ns_ = item.time_ns;
    const int64_t ns = item.time_ns - *first_ns_;
    const Moment moment = timeline_.Take(stream);
    for (const Track* track : timeline_.TakeNewTracks()) Name(*track, out);
    const SpanChange& change = moment.change;
    for (size_t i = 0; i < change.ends; i++) {
      Open("E", *moment.track, ns, out);
      const bool own = i + 1 == change.ends;
      if (own) Arguments(stream, out);
      out += '}';
    }
    if (change.begins || change.instant) {
      Open(change.begins ? "B" : "i", *moment.track, ns, out);
      out += ",\"name\":";
      AppendJsonString(out, *moment.name);
      if (change.instant) out += ",\"s\":\"t\"";
      Arguments(stream, out);
      out += '}';
    }
    if (moment.counter != nullptr) {
      Open("C", *moment.counter, ns, out);
      out += ",\"name\":";
      AppendJsonString(out, moment.counter->name);
      out += ",\"args\":{\"value\":";
      JsonPrinter(out).Float({}, moment.value);
      out += "}}";
    }
    if (moment.cpu == nullptr) return;
    if (moment.cpu_was_busy) {
      Open("E", *moment.cpu, ns, out);
      out += '}';
    }
    if (moment.running.empty()) return;
    Open("B", *moment.cpu, ns, out);
    out += ",\"name\":";
    AppendJsonString(out, moment.running);
    out += '}';
  }

  void End(std::string& out) override {
    out += "\n]";
    if (first_ns_) {
      out += ",\"otherData\":{\"first_event\":";
      AppendIsoTime(out, *first_ns_);
      out += "}";
    }
    out += "}\n";
  }

 private:
  // {"ph":...,"pid":...,"tid":...,"ts":...
  void Open(const char* phase, const Track& track, int64_t ns, std::string& out) {
    std::array<char, 160> text;
    const auto absolute = static_cast<uint64_t>(ns < 0 ? -ns : ns);
    const int n = std::snprintf(text.data(), text.size(),
                                "%s{\"ph\":\"%s\",\"pid\":%" PRIu64 ",\"tid\":%" PRIu64
                                ",\"ts\":%s%" PRIu64 ".%03" PRIu64,
                                any_ ? ",\n" : "", phase, ProcessOf(track), track.id,
                                ns < 0 ? "-" : "", absolute / 1000, absolute % 1000);
    out.append(text.data(), static_cast<size_t>(n));
    any_ = true;
  }

  // A new track's name. A counter's stands with its values.
  void Name(const Track& track, std::string& out) {
    if (track.kind == TrackKind::kCounter) return;
    const bool process = track.parent == nullptr || track.kind == TrackKind::kProcess;
    std::string name = track.name;
    if (track.kind == TrackKind::kProcess) name = track.parent->name + " " + name;
    out += any_ ? ",\n" : "";
    any_ = true;
    out += process ? "{\"ph\":\"M\",\"name\":\"process_name\",\"pid\":"
                   : "{\"ph\":\"M\",\"name\":\"thread_name\",\"pid\":";
    out += std::to_string(ProcessOf(track));
    if (!process) out += ",\"tid\":" + std::to_string(track.id);
    out += ",\"args\":{\"name\":";
    AppendJsonString(out, name);
    out += "}}";
  }

  static void Arguments(ctf::StreamReader& stream, std::string& out) {
    const size_t before = out.size();
    out += ",\"args\":";
    JsonPrinter printer(out);
    if (!stream.Visit(ctf::Scope::kPayload, printer)) out.resize(before);
  }

  Timeline timeline_;
  std::optional<int64_t> first_ns_;
  bool any_ = false;
};

}  // namespace

std::unique_ptr<Exporter> MakeChromeJsonExporter(const CounterFields& counters) {
  return std::make_unique<ChromeJsonExporter>(counters);
}

}  // namespace weft::cli
