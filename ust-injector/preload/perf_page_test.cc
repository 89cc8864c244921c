// SPDX-License-Identifier: Apache-2.0
// A counter's page without a processor's counter: machines that test this often have none.
#include "ust-injector/preload/perf_page.h"

#include <gtest/gtest.h>

#include <memory>

namespace {

TEST(PerfPage, ACounterThatDoesNotRunIsItsOffset) {
  auto page = std::make_unique<perf_event_mmap_page>();
  page->offset = 12345;
  page->cap_user_rdpmc = 1;
  page->index = 0;
  EXPECT_EQ(weft_perf_read_page(page.get()), 12345U);
}

TEST(PerfPage, WithoutTheRightToReadTheProcessorIsNotAsked) {
  auto page = std::make_unique<perf_event_mmap_page>();
  page->offset = 7;
  page->index = 1;
  EXPECT_EQ(weft_perf_read_page(page.get()), 7U);
}

TEST(PerfPage, CountersOfAnyWidthKeepTheirSign) {
  EXPECT_EQ(weft_perf_extend(5, 48), 5U);
  EXPECT_EQ(weft_perf_extend((uint64_t{1} << 48) - 3, 48), uint64_t{0} - 3);
  EXPECT_EQ(weft_perf_extend(uint64_t{1} << 47, 48), uint64_t{0} - (uint64_t{1} << 47));
  EXPECT_EQ(weft_perf_extend(~uint64_t{0} - 1, 64), ~uint64_t{0} - 1);
  // Bits above the width do not belong to the counter.
  EXPECT_EQ(weft_perf_extend(uint64_t{0xff} << 40 | 9, 40), 9U);
}

}  // namespace
