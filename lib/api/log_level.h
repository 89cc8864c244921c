// SPDX-License-Identifier: Apache-2.0
// LTTng-UST's log levels, 0 (emergency, most severe) to 14 (debug), and
// the log level rule of an event in a Trace. Thread-safety: plain
// values.
#ifndef WEFT_LIB_API_LOG_LEVEL_H_
#define WEFT_LIB_API_LOG_LEVEL_H_

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

namespace weft::api {

// The values are LTTng-UST 2.13's (lttng/tracepoint-event.h), and lib/abi's.
enum class LogLevel : std::int32_t {
  kEmerg = 0,
  kAlert,
  kCrit,
  kErr,
  kWarning,
  kNotice,
  kInfo,
  kDebugSystem,
  kDebugProgram,
  kDebugProcess,
  kDebugModule,
  kDebugUnit,
  kDebugFunction,
  kDebugLine,
  kDebug,
};

// Returns all names in a Trace's spelling ("emerg" ... "debug"), by level.
std::span<const std::string_view> LogLevelNames();

// Parses a level from a command line: in any case, with or without LTTng's prefix TRACE_, with -
// for _.
std::optional<LogLevel> ParseLogLevel(std::string_view text);

// Both ends are included; which is the more severe one does not matter.
struct LogLevelRange {
  LogLevel from = LogLevel::kEmerg;
  LogLevel to = LogLevel::kDebug;
  bool operator==(const LogLevelRange&) const = default;
};

// At most one member is set; none: every level.
struct LogLevelRule {
  std::optional<LogLevel> exactly;
  std::optional<LogLevel> at_least;  // this one and the more severe ones
  std::optional<LogLevelRange> range;
  bool operator==(const LogLevelRule&) const = default;

  struct Bounds {  // numbers, both included, min <= max
    std::int32_t min;
    std::int32_t max;
  };
  // If there is no rule, returns every number, also those outside LTTng's scale.
  Bounds AdmittedLevels() const;
};

}  // namespace weft::api

#endif  // WEFT_LIB_API_LOG_LEVEL_H_
