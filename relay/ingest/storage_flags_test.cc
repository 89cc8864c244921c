// SPDX-License-Identifier: Apache-2.0
#include "relay/ingest/storage_flags.h"

#include <gtest/gtest.h>

namespace weft::ingest {
namespace {

std::string Refusal(const StorageFlags& flags) {
  const auto limits = ParseStorage(flags);
  return limits ? "" : limits.error().message;
}

TEST(StorageFlagsTest, DefaultsRemoveNothing) {
  const auto limits = ParseStorage({});
  ASSERT_TRUE(limits) << limits.error().message;
  EXPECT_EQ(limits->chunk_bytes, StorageLimits().chunk_bytes);
  EXPECT_EQ(limits->chunk_time, StorageLimits().chunk_time);
  EXPECT_EQ(limits->namespace_bytes + limits->trace_bytes + limits->free_bytes, 0U);
  EXPECT_EQ(limits->age.count(), 0);
}

TEST(StorageFlagsTest, QuantitiesAndDurationsAreThoseOfKubernetes) {
  const auto limits = ParseStorage({.chunk_size = "1M",
                                    .chunk_time = "1h30m",
                                    .namespace_quota = "10Gi",
                                    .trace_quota = "1e9",
                                    .max_age = "36h",
                                    .min_free = "512Mi"});
  ASSERT_TRUE(limits) << limits.error().message;
  EXPECT_EQ(limits->chunk_bytes, 1'000'000U);
  EXPECT_EQ(limits->chunk_time, std::chrono::minutes(90));
  EXPECT_EQ(limits->namespace_bytes, uint64_t{10} << 30);
  EXPECT_EQ(limits->trace_bytes, 1'000'000'000U);
  EXPECT_EQ(limits->age, std::chrono::hours(36));
  EXPECT_EQ(limits->free_bytes, uint64_t{512} << 20);
}

TEST(StorageFlagsTest, AMistakeIsNamedWithWhatToDo) {
  EXPECT_EQ(Refusal({.trace_quota = "-1Gi"}),
            "--trace-quota '-1Gi' is not a size: write a number of bytes, such as 10Gi");
  EXPECT_EQ(Refusal({.min_free = "5%"}),
            "--min-free '5%' is not a size: write a number of bytes, such as 10Gi");
  EXPECT_EQ(Refusal({.max_age = "-1h"}),
            "--max-age '-1h' is not a time: write a duration, such as 72h");
  EXPECT_EQ(Refusal({.max_age = "7 days"}),
            "--max-age '7 days' is not a time: write a duration, such as 72h");
  EXPECT_EQ(
      Refusal({.namespace_quota = "63Mi"}),
      "--namespace-quota '63Mi' is less than one chunk, 64Mi: make it larger, or --chunk-size "
      "smaller");
  EXPECT_EQ(Refusal({.chunk_size = "1Ki"}),
            "--chunk-size '1Ki' is too small: each chunk is a file; write at least 256Ki");
  EXPECT_EQ(Refusal({.chunk_time = "1s"}),
            "--chunk-time '1s' is too short: each chunk is a file; write at least 1m");
}

}  // namespace
}  // namespace weft::ingest
