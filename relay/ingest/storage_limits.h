// SPDX-License-Identifier: Apache-2.0
// What the relay keeps, and in what pieces: its flags, from `relay.storage` of the chart's values.
#ifndef WEFT_RELAY_INGEST_STORAGE_LIMITS_H_
#define WEFT_RELAY_INGEST_STORAGE_LIMITS_H_

#include <chrono>
#include <cstdint>

namespace weft::ingest {

// 0: no limit.
struct StorageLimits {
  // A chunk ends before the packet that would make it larger, and before a packet that comes so
  // long after its first one.
  uint64_t chunk_bytes = uint64_t{64} << 20;
  std::chrono::seconds chunk_time = std::chrono::hours(24);
  // A namespace's share, and that of each Trace in it: all of its files together.
  uint64_t namespace_bytes = 0;
  uint64_t trace_bytes = 0;
  // Events older than this are removed, a chunk at a time.
  std::chrono::seconds age{0};
  // What the relay leaves free of its volume.
  uint64_t free_bytes = 0;
};

// What a Trace's `storage` says; the relay's own limits hold, too.
struct TraceLimits {
  uint64_t bytes = 0;
  std::chrono::seconds age{0};
};

}  // namespace weft::ingest

#endif  // WEFT_RELAY_INGEST_STORAGE_LIMITS_H_
