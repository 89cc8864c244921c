// SPDX-License-Identifier: Apache-2.0
// One format that a trace is exported to. export.cc calls it with one event after the other, in the
// order of their times. Thread-safety: one thread per object.
#ifndef WEFT_CLI_EXPORT_EXPORTER_H_
#define WEFT_CLI_EXPORT_EXPORTER_H_

#include <map>
#include <memory>
#include <string>

#include "lib/ctf/stream_reader.h"

namespace weft::cli {

// Which events are values of a counter: the event's name, and the name of the field.
using CounterFields = std::map<std::string, std::string>;

class Exporter {
 public:
  virtual ~Exporter() = default;
  // Each appends to `out`.
  virtual void Begin(std::string&) {}
  // The stream's current item: an event, or a count of what is missing.
  virtual void Item(ctf::StreamReader& stream, std::string& out) = 0;
  virtual void End(std::string&) {}
};

std::unique_ptr<Exporter> MakeCsvExporter();
std::unique_ptr<Exporter> MakeJsonLinesExporter();
std::unique_ptr<Exporter> MakeChromeJsonExporter(const CounterFields& counters);
std::unique_ptr<Exporter> MakePerfettoExporter(const CounterFields& counters);

}  // namespace weft::cli

#endif  // WEFT_CLI_EXPORT_EXPORTER_H_
