// SPDX-License-Identifier: Apache-2.0
// See summary.h.
#include "cli/summary.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>

#include "lib/base/unique_fd.h"
#include "lib/fields/json.h"

namespace weft::cli {
namespace {

using fields::Json;

uint64_t Sum(const std::map<std::string, uint64_t>& counts) {
  uint64_t sum = 0;
  for (const auto& [reason, count] : counts) sum += count;
  return sum;
}

std::string Plural(uint64_t count, const char* one) {
  return std::to_string(count) + " " + one + (count == 1 ? "" : "s");
}

// "12 (full 10, memory 2)"
std::string WithReasons(const std::map<std::string, uint64_t>& counts) {
  std::string text = std::to_string(Sum(counts));
  const char* between = " (";
  for (const auto& [reason, count] : counts) {
    if (count == 0) continue;
    text += between + reason + " " + std::to_string(count);
    between = ", ";
  }
  return Sum(counts) == 0 ? text : text + ")";
}

std::string TraceLines(const std::string& prefix, const ipc::TraceState& trace,
                       const std::string& output) {
  const ipc::ChannelCounts& c = trace.counts;
  std::string text = prefix + Plural(c.delivered, "event") + " in " + Plural(c.streams, "stream") +
                     ", " + SizeText(c.bytes) + ", in " + output + "\n";
  text += prefix + "discarded " + WithReasons(c.discarded);
  if (c.overwritten != 0) text += ", overwritten " + std::to_string(c.overwritten);
  if (Sum(c.lost) != 0) text += ", lost " + WithReasons(c.lost);
  text += "\n";
  if (c.corrupt_rings != 0)
    text += prefix + Plural(c.corrupt_rings, "ring set") +
            " of processes corrupt: read up to the "
            "damage\n";
  if (c.tail_unknown != 0)
    text += prefix + "the end of " + Plural(c.tail_unknown, "ring set") + " is not known\n";
  if (c.missed_anywhere != 0)
    text += prefix + Plural(c.missed_anywhere, "hit") +
            " of its kernel probes, by any program of this machine, missed by the kernel\n";
  return text;
}

}  // namespace

std::string SizeText(uint64_t bytes) {
  constexpr std::array kUnits = {"bytes", "KiB", "MiB", "GiB", "TiB"};
  auto value = static_cast<double>(bytes);
  size_t unit = 0;
  while (value >= 1024 && unit + 1 < kUnits.size()) {
    value /= 1024;
    ++unit;
  }
  char text[64];
  std::snprintf(text, sizeof(text), unit == 0 ? "%.0f %s" : "%.1f %s", value, kUnits[unit]);
  return text;
}

std::string SummaryText(const ipc::SessionState& state) {
  std::string text;
  for (const ipc::TraceState& trace : state.traces) {
    const bool several = state.traces.size() > 1;
    text += TraceLines(several ? "weft: " + trace.name + ": " : "weft: ", trace,
                       several ? state.output + "/" + trace.name : state.output);
  }
  for (const std::string& notice : state.notices) text += "weft: " + notice + "\n";
  return text;
}

std::string SummaryJson(const ipc::SessionState& state) {
  Json json = {{"output", state.output},
               {"programs", state.programs},
               {"recoveries", state.recoveries},
               {"notices", state.notices},
               {"traces", Json::array()}};
  for (const ipc::TraceState& trace : state.traces) {
    const ipc::ChannelCounts& c = trace.counts;
    Json counts = fields::JsonWriter().Value(c);
    counts.update(
        {{"name", trace.name}, {"path", trace.path}, {"emitted", c.recorded + Sum(c.discarded)}});
    json["traces"].push_back(std::move(counts));
  }
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

Status CheckSummaryFile(const std::string& path) {
  if (path.empty()) return {};
  const auto refuse = [&path](const std::string& why) {
    return Fail(ErrorCode::kInvalid,
                "--summary: " + path + ": " + why + "; name a file that can be written");
  };
  struct stat st{};
  if (stat(path.c_str(), &st) == 0) {
    if (S_ISDIR(st.st_mode)) return refuse("is a folder");
    if (access(path.c_str(), W_OK) != 0) return refuse(std::strerror(errno));
    return {};
  }
  const UniqueFd made(open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
  if (made) {
    unlink(path.c_str());
    return {};
  }
  // EEXIST: a link to a file that does not exist yet.
  if (errno != EEXIST) return refuse(std::strerror(errno));
  return {};
}

std::string ProgressText(const ipc::SessionState& state) {
  uint64_t events = 0, bytes = 0, discarded = 0, lost = 0, unknown = 0;
  for (const ipc::TraceState& trace : state.traces) {
    events += trace.counts.delivered;
    bytes += trace.counts.bytes;
    discarded += Sum(trace.counts.discarded);
    lost += Sum(trace.counts.lost);
    unknown += trace.counts.tail_unknown;
  }
  return "weft: " + Plural(events, "event") + ", discarded " + std::to_string(discarded) + ", " +
         (lost == 0 ? "" : "lost " + std::to_string(lost) + ", ") +
         (unknown == 0 ? "" : "the end of " + Plural(unknown, "ring set") + " is not known, ") +
         SizeText(bytes) + ", " +
         (state.processes == 1 ? "1 process" : std::to_string(state.processes) + " processes");
}

bool OutputFailed(const ipc::SessionState& state) {
  for (const ipc::TraceState& trace : state.traces)
    for (const auto& [reason, count] : trace.counts.lost)
      if (count != 0 && (reason.starts_with("store/") || reason == "relay/refused")) return true;
  return false;
}

}  // namespace weft::cli
