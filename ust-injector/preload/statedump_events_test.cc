// SPDX-License-Identifier: Apache-2.0
// The state dump's descriptions, byte by byte: readers find events by them, and the consumer merges
// those of processes with different versions of libweft.so.
#include "ust-injector/preload/statedump_events.h"

#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <vector>

#include "lib/event/description.h"

namespace weft {
namespace {

struct Expected {
  int event;
  std::string_view hex;
  uint32_t fixed_size;
  int segments;
};

const std::vector<Expected> kExpected = {
    {WEFT_STATEDUMP_START,
     "38000000010000000d0000001a00000000000000000000006c74746e675f7573745f737461746564756d"
     "703a737461727400000000000000",
     0, 0},
    {WEFT_STATEDUMP_PROCNAME,
     "50000000010001000d0000001d00000000000000000000006c74746e675f7573745f737461746564756d"
     "703a70726f636e616d6500190000000415010a110000000900000070726f636e616d65000000",
     17, 0},
    {WEFT_STATEDUMP_BIN_INFO,
     "d0000000010006000d0000001d00000000000000000000006c74746e675f7573745f737461746564756d"
     "703a62696e5f696e666f0016000000010008100000000006000000626164647200160000000100080a00"
     "000000060000006d656d737a00150000000300010000000000050000007061746800170000000100010a"
     "000000000700000069735f706963001d0000000100010a000000000d0000006861735f6275696c645f69"
     "64001f0000000100010a000000000f0000006861735f64656275675f6c696e6b0000000000000000",
     sizeof(weft_statedump_bin_info), 1},
    {WEFT_STATEDUMP_BUILD_ID,
     "68000000010002000d0000001d00000000000000000000006c74746e675f7573745f737461746564756d"
     "703a6275696c645f69640016000000010008100000000006000000626164647200190000000500011000"
     "000000090008006275696c645f69640000000000",
     sizeof(weft_statedump_build_id), 1},
    {WEFT_STATEDUMP_END,
     "30000000010000000d0000001800000000000000000000006c74746e675f7573745f737461746564756d"
     "703a656e6400",
     0, 0},
};

std::string Hex(const uint8_t* bytes, int size) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string text;
  for (int i = 0; i < size; ++i) {
    text += kDigits[bytes[i] >> 4];
    text += kDigits[bytes[i] & 15];
  }
  return text;
}

TEST(StatedumpEvents, AreDescribedByTheExpectedBytes) {
  ASSERT_EQ(kExpected.size(), static_cast<size_t>(WEFT_STATEDUMP_EVENTS));
  for (const Expected& expected : kExpected) {
    SCOPED_TRACE(expected.event);
    std::vector<uint8_t> buffer(WEFT_STATEDUMP_DESCRIPTION_BYTES);
    weft_event event{};
    const int size = weft_runtime_provide(&weft_statedump_events[expected.event], buffer.data(),
                                          WEFT_STATEDUMP_DESCRIPTION_BYTES, &event);
    ASSERT_GT(size, 0);
    EXPECT_EQ(Hex(buffer.data(), size), expected.hex);
    EXPECT_EQ(event.fixed_size, expected.fixed_size);
    EXPECT_EQ(event.segment_count, expected.segments);
    EXPECT_TRUE(EventDescription::Parse(buffer).has_value());
  }
}

}  // namespace
}  // namespace weft
