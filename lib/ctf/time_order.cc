// SPDX-License-Identifier: Apache-2.0
#include "lib/ctf/time_order.h"

#include <array>
#include <cinttypes>
#include <cstdio>
#include <string_view>
#include <utility>
#include <variant>

namespace weft::ctf {
namespace {

constexpr uint64_t kNsPerSecond = 1'000'000'000;

// Returns the time from `earlier` to `later` as "0.000013491 s".
std::string Seconds(const ClockClass& clock, uint64_t earlier, uint64_t later) {
  const uint64_t cycles = later - earlier;
  const uint64_t seconds = cycles / clock.frequency;
  const auto ns = static_cast<uint64_t>(static_cast<unsigned __int128>(cycles % clock.frequency) *
                                        kNsPerSecond / clock.frequency);
  std::array<char, 48> text;
  std::snprintf(text.data(), text.size(), "%" PRIu64 ".%09" PRIu64 " s", seconds, ns);
  return text.data();
}

int64_t EnvNumber(const TraceClass& trace, std::string_view name) {
  for (const EnvEntry& entry : trace.env) {
    const auto* number = std::get_if<int64_t>(&entry.value);
    if (entry.name == name && number != nullptr) return *number;
  }
  return 0;
}

}  // namespace

TimeOrder::TimeOrder(const TraceClass& trace) {
  const std::string* tracer = trace.EnvText("tracer_name");
  if (tracer == nullptr) return;
  const std::pair version(EnvNumber(trace, "tracer_major"), EnvNumber(trace, "tracer_minor"));
  events_may_follow_end_ =
      tracer->starts_with("lttng-") && version < std::pair<int64_t, int64_t>(2, 11);
  events_may_precede_packet_ = *tracer == "barectf";
}

std::string TimeOrder::Wrong(const std::string& what) {
  if (std::exchange(is_wrong_, true) || wrong_packets_++ > 0) return "";
  return what;
}

std::string TimeOrder::Packet(const ClockClass& clock, std::optional<uint64_t> begin,
                              std::optional<uint64_t> end, uint64_t offset) {
  if (end_ && end_ >= latest_end_) {
    latest_end_ = end_;
    latest_offset_ = offset_;
  }
  // A packet that LTTng takes out of a crashed program's memory has the end 0.
  end_ = end == 0 ? std::nullopt : end;
  last_ = events_may_precede_packet_ ? std::nullopt : begin;
  offset_ = offset;
  is_wrong_ = false;
  goes_back_ = begin && latest_end_ && *begin < *latest_end_;
  if (goes_back_) {
    return Wrong("its times go back: it begins " + Seconds(clock, *begin, *latest_end_) +
                 " before the packet at byte " + std::to_string(latest_offset_) +
                 " ends. The file may hold packets twice, or packets of several recordings. All "
                 "of it is shown");
  }
  if (begin && end_ && *end_ < *begin) {
    return Wrong("it ends " + Seconds(clock, *end_, *begin) +
                 " before it begins: its times are damaged. All of it is shown");
  }
  return "";
}

std::string TimeOrder::Event(const ClockClass& clock, uint64_t time, const std::string& name) {
  const std::optional<uint64_t> before = std::exchange(last_, time);
  if (before && time < *before) {
    return Wrong("its times go back: an event '" + name + "' is " + Seconds(clock, time, *before) +
                 " earlier than what precedes it. All of it is shown");
  }
  if (end_ && time > *end_ && !events_may_follow_end_) {
    return Wrong("an event '" + name + "' is " + Seconds(clock, *end_, time) +
                 " later than the packet's end: its times are damaged. All of it is shown");
  }
  return "";
}

}  // namespace weft::ctf
