// SPDX-License-Identifier: Apache-2.0
// See storage_flags.h.
#include "relay/ingest/storage_flags.h"

#include <chrono>

#include "lib/api/quantity.h"
#include "relay/ingest/limits.h"

namespace weft::ingest {
namespace {

Result<uint64_t> ParseSize(const char* flag, const std::string& text) {
  const auto size = api::ParseQuantity(text);
  if (size) return *size;
  return Fail(ErrorCode::kInvalid, std::string(flag) + " '" + text +
                                       "' is not a size: write a number of bytes, such as 10Gi");
}

Result<std::chrono::seconds> ParseTime(const char* flag, const std::string& text) {
  const auto time = api::ParseDuration(text);
  if (time && *time >= time->zero()) return std::chrono::ceil<std::chrono::seconds>(*time);
  return Fail(ErrorCode::kInvalid,
              std::string(flag) + " '" + text + "' is not a time: write a duration, such as 72h");
}

Status CheckQuota(const char* flag, const std::string& text, uint64_t quota, uint64_t chunk) {
  if (quota == 0 || quota >= chunk) return {};
  return Fail(ErrorCode::kInvalid, std::string(flag) + " '" + text + "' is less than one chunk, " +
                                       api::FormatQuantity(chunk) +
                                       ": make it larger, or --chunk-size smaller");
}

}  // namespace

Result<StorageLimits> ParseStorage(const StorageFlags& flags) {
  StorageLimits limits;
  WEFT_ASSIGN(limits.chunk_bytes, ParseSize("--chunk-size", flags.chunk_size));
  WEFT_ASSIGN(limits.chunk_time, ParseTime("--chunk-time", flags.chunk_time));
  WEFT_ASSIGN(limits.namespace_bytes, ParseSize("--namespace-quota", flags.namespace_quota));
  WEFT_ASSIGN(limits.trace_bytes, ParseSize("--trace-quota", flags.trace_quota));
  WEFT_ASSIGN(limits.age, ParseTime("--max-age", flags.max_age));
  WEFT_ASSIGN(limits.free_bytes, ParseSize("--min-free", flags.min_free));
  if (limits.chunk_bytes < kMinChunkBytes) {
    return Fail(ErrorCode::kInvalid, "--chunk-size '" + flags.chunk_size +
                                         "' is too small: each chunk is a file; write at least " +
                                         api::FormatQuantity(kMinChunkBytes));
  }
  if (limits.chunk_time.count() > 0 && limits.chunk_time < kMinChunkTime) {
    return Fail(ErrorCode::kInvalid, "--chunk-time '" + flags.chunk_time +
                                         "' is too short: each chunk is a file; write at least " +
                                         api::FormatDuration(kMinChunkTime));
  }
  WEFT_TRY(CheckQuota("--namespace-quota", flags.namespace_quota, limits.namespace_bytes,
                      limits.chunk_bytes));
  WEFT_TRY(CheckQuota("--trace-quota", flags.trace_quota, limits.trace_bytes, limits.chunk_bytes));
  return limits;
}

}  // namespace weft::ingest
