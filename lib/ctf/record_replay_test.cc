// SPDX-License-Identifier: Apache-2.0
// The fuzz target record_fuzz.cc on random inputs, so that every build runs its checks.
#include <gtest/gtest.h>

#include <random>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);

namespace {

TEST(RecordReplay, WriterAndReaderAgreeOnRandomRecords) {
  std::mt19937_64 random(7);
  for (int round = 0; round < 1500; round++) {
    std::vector<uint8_t> bytes(4 + random() % 400);
    // Small numbers often: they are lengths that fit.
    for (uint8_t& byte : bytes) {
      byte = static_cast<uint8_t>(random() % 3 == 0   ? random()
                                  : random() % 4 == 0 ? random() % 8
                                                      : 0);
    }
    bytes[0] = static_cast<uint8_t>(random());
    bytes[3] = static_cast<uint8_t>(random() % 60);
    EXPECT_EQ(LLVMFuzzerTestOneInput(bytes.data(), bytes.size()), 0);
  }
}

}  // namespace
