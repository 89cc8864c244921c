// SPDX-License-Identifier: Apache-2.0
// The relay's flags for what it keeps, as users write quantities and durations in Kubernetes.
#ifndef WEFT_RELAY_INGEST_STORAGE_FLAGS_H_
#define WEFT_RELAY_INGEST_STORAGE_FLAGS_H_

#include <string>

#include "lib/base/result.h"
#include "relay/ingest/storage_limits.h"

namespace weft::ingest {

// "0" and "0s": no limit.
struct StorageFlags {
  std::string chunk_size = "64Mi";
  std::string chunk_time = "24h";
  std::string namespace_quota = "0";
  std::string trace_quota = "0";
  std::string max_age = "0s";
  std::string min_free = "0";
};

// kInvalid: a flag is not what it should be; the message names it.
Result<StorageLimits> ParseStorage(const StorageFlags& flags);

}  // namespace weft::ingest

#endif  // WEFT_RELAY_INGEST_STORAGE_FLAGS_H_
