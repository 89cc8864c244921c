// SPDX-License-Identifier: Apache-2.0
// The cluster's tests read whole archives by Python's tarfile.
#include "relay/api/tar.h"

#include <gtest/gtest.h>

#include <numeric>
#include <string>

namespace weft::relay_api {
namespace {

std::string Field(const std::string& header, size_t at, size_t width) {
  return header.substr(at, width).c_str();
}

// Whether the block at `at` has a checksum that is right.
bool IsRight(std::string header, size_t at) {
  std::string block = header.substr(at, kTarBlock);
  const unsigned long said = std::stoul(Field(block, 148, 8), nullptr, 8);
  block.replace(148, 8, 8, ' ');
  return said == std::accumulate(block.begin(), block.end(), 0UL, [](unsigned long sum, char c) {
           return sum + static_cast<unsigned char>(c);
         });
}

TEST(Tar, AShortPathTakesOneBlock) {
  const std::string header = TarHeader("pod/metadata", 1000);
  ASSERT_EQ(header.size(), kTarBlock);
  EXPECT_EQ(Field(header, 0, 100), "pod/metadata");
  EXPECT_EQ(Field(header, 124, 12), "00000001750");
  EXPECT_EQ(header[156], '0');
  EXPECT_EQ(Field(header, 257, 6), "ustar");
  EXPECT_TRUE(IsRight(header, 0));
  EXPECT_EQ(TarPadding(1000), 24U);
  EXPECT_EQ(TarPadding(1024), 0U);
}

TEST(Tar, ALongPathAndALargeFileHaveRecords) {
  const std::string path(101, 'p');
  const std::string header = TarHeader(path, uint64_t{1} << 33);
  ASSERT_EQ(header.size(), 3 * kTarBlock);
  EXPECT_EQ(header[156], 'x');
  EXPECT_EQ(header[2 * kTarBlock + 156], '0');
  EXPECT_TRUE(IsRight(header, 0));
  EXPECT_TRUE(IsRight(header, 2 * kTarBlock));
  EXPECT_EQ(Field(header, kTarBlock, kTarBlock), "111 path=" + path + "\n19 size=8589934592\n");
  EXPECT_EQ(std::stoul(Field(header, 124, 12), nullptr, 8), 111U + 19U);
}

}  // namespace
}  // namespace weft::relay_api
