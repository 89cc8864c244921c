// SPDX-License-Identifier: Apache-2.0
// Reads CLOCK_MONOTONIC of the host, also in a process of a time namespace, where the kernel adds
// the namespace's offset to what clock_gettime returns (time_namespaces(7)). All times in a node's
// rings are host times (docs/adr/0029-time-namespaces.md). For weft's own processes, which never
// change their namespace.
#ifndef WEFT_LIB_BASE_HOST_CLOCK_H_
#define WEFT_LIB_BASE_HOST_CLOCK_H_

#include <cstdint>
#include <optional>
#include <string_view>

namespace weft {

// Nanoseconds. The first call in a process opens files in /proc: a sandbox that forbids it comes
// later. Any thread.
uint64_t HostMonotonicNs();

// Returns the offset of CLOCK_MONOTONIC in the text of /proc/PID/timens_offsets, in nanoseconds.
std::optional<int64_t> ParseTimeNamespaceOffset(std::string_view text);

}  // namespace weft

#endif  // WEFT_LIB_BASE_HOST_CLOCK_H_
