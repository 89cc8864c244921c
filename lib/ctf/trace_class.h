// SPDX-License-Identifier: Apache-2.0
// The metadata of a trace after parsing: the types of its streams, packets and events.
// tsdl_parser.cc or ctf2_parser.cc make it from foreign bytes; everything in it is within the
// limits below. Thread-safety: immutable once made.
#ifndef WEFT_LIB_CTF_TRACE_CLASS_H_
#define WEFT_LIB_CTF_TRACE_CLASS_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "lib/base/result.h"
#include "lib/ctf/schema.h"
#include "lib/ctf/type.h"

namespace weft::ctf {

// Far above what tracers write; they bound memory and stack for hostile metadata.
inline constexpr size_t kMaxMetadataBytes = 16 * 1024 * 1024;
inline constexpr uint32_t kMaxTypeNodes = 500'000;  // Types in one trace, copies counted
inline constexpr int kMaxTypeDepth = 32;
inline constexpr size_t kMaxMetadataProblems = 1000;

struct ClockClass {
  std::string name;
  uint64_t frequency = 1'000'000'000;
  int64_t offset_seconds = 0;
  uint64_t offset_cycles = 0;

  // Returns nanoseconds since the epoch; std::nullopt if they do not fit an int64 (before 1677 or
  // after 2262).
  [[nodiscard]] std::optional<int64_t> ToNs(uint64_t cycles) const;
};

struct EventRecordClass {
  uint64_t id = 0;
  std::string unreadable;  // why its events cannot be decoded; empty: they can
  std::string name;
  std::string uri;
  int64_t loglevel = -1;
  std::optional<Type> context;
  std::optional<Type> payload;
};

struct DataStreamClass {
  uint64_t id = 0;
  std::string unreadable;           // why its packets cannot be decoded; empty: they can
  std::optional<ClockClass> clock;  // none: its events have no times
  std::optional<Type> packet_context;
  std::optional<Type> event_header;
  std::optional<Type> event_context;
  std::map<uint64_t, EventRecordClass> events;
};

struct TraceClass {
  Version version = Version::k1_8;
  std::optional<Uuid> uuid;
  std::vector<EnvEntry> env;
  std::optional<Type> packet_header;
  std::map<uint64_t, DataStreamClass> streams;
  uint32_t saved_values = 0;  // how many values a decoder keeps for references
  // What could not be read, one line each: classes above that are `unreadable`, and parts that are
  // left out altogether. There are at most kMaxMetadataProblems lines.
  std::vector<std::string> problems;

  void AddProblem(std::string what) {
    if (problems.size() < kMaxMetadataProblems) problems.push_back(std::move(what));
  }

  [[nodiscard]] const std::string* EnvText(std::string_view name) const;
};

// Parses metadata as it is in the file: TSDL or JSON, packetized or not, in either byte order. A
// class of events or streams that cannot be read costs that class only (TraceClass::problems names
// it); an error means that nothing can be read.
Result<TraceClass> ParseMetadata(std::string_view bytes);

}  // namespace weft::ctf

#endif  // WEFT_LIB_CTF_TRACE_CLASS_H_
