// SPDX-License-Identifier: Apache-2.0
// See host_clock.h.
#include "lib/base/host_clock.h"

#include <sys/stat.h>

#include <ctime>
#include <fstream>
#include <sstream>
#include <string>

namespace weft {
namespace {

constexpr int64_t kSecond = 1'000'000'000;

// Does the file /proc/self/timens_offsets describe this process's own namespace? It describes the
// one that children are born into; the two differ if this process or its parent has just made
// another one for its children.
bool IsOwnNamespaceForChildren() {
  struct stat own{}, children{};
  return ::stat("/proc/self/ns/time", &own) == 0 &&
         ::stat("/proc/self/ns/time_for_children", &children) == 0 && own.st_ino == children.st_ino;
}

// Returns 0 on a kernel without time namespaces, and without /proc.
int64_t TimeNamespaceOffset() {
  if (!IsOwnNamespaceForChildren()) return 0;
  std::ifstream in("/proc/self/timens_offsets");
  std::ostringstream text;
  text << in.rdbuf();
  return ParseTimeNamespaceOffset(text.str()).value_or(0);
}

}  // namespace

std::optional<int64_t> ParseTimeNamespaceOffset(std::string_view text) {
  std::istringstream lines{std::string(text)};
  std::string line, clock;
  while (std::getline(lines, line)) {
    std::istringstream words(line);
    int64_t seconds = 0, nanoseconds = 0;
    if (!(words >> clock >> seconds >> nanoseconds) || clock != "monotonic") continue;
    return seconds * kSecond + nanoseconds;
  }
  return std::nullopt;
}

uint64_t HostMonotonicNs() {
  static const int64_t offset = TimeNamespaceOffset();
  timespec now{};
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<uint64_t>(now.tv_sec * kSecond + now.tv_nsec - offset);
}

}  // namespace weft
