// SPDX-License-Identifier: Apache-2.0
// See clock_choice.h. Source of the formats: kernel's
// Documentation/ABI/testing/sysfs-devices-system-cpu ("possible": a list of ranges) and
// .../sysfs-devices-system-clocksource.
#include "node-agent/agent/base/clock_choice.h"

#include <algorithm>
#include <charconv>
#include <fstream>
#include <sstream>

namespace weft::agent {
namespace {

std::string FirstLine(const std::string& path) {
  std::ifstream in(path);
  std::string line;
  std::getline(in, line);
  return line;
}

}  // namespace

weft_clock_id ChooseClock(const std::string& sysfs) {
  const std::string folder = sysfs + "/devices/system/clocksource/clocksource0/";
  std::string current = FirstLine(folder + "current_clocksource");
  current.erase(current.find_last_not_of(" \n") + 1);
  if (current != "tsc" && current != "arch_sys_counter") return WEFT_CLOCK_MONOTONIC;
  std::istringstream available(FirstLine(folder + "available_clocksource"));
  for (std::string name; available >> name;)
    if (name == current) return WEFT_CLOCK_TSC;
  return WEFT_CLOCK_MONOTONIC;
}

uint32_t PossibleCpus(const std::string& sysfs) {
  const std::string list = FirstLine(sysfs + "/devices/system/cpu/possible");
  // "0-3,8-11": slots are indexed by the number of a CPU, so the highest one counts.
  const size_t at = list.find_last_of(",-");
  const char* begin = list.data() + (at == std::string::npos ? 0 : at + 1);
  uint32_t last = 0;
  std::from_chars(begin, list.data() + list.size(), last);
  return std::clamp(last + 1, 1u, WEFT_RING_MAX_SLOTS - 1);
}

}  // namespace weft::agent
