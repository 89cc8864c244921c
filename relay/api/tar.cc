// SPDX-License-Identifier: Apache-2.0
// See tar.h.
#include "relay/api/tar.h"

#include <algorithm>
#include <numeric>

namespace weft::relay_api {
namespace {

// Places and widths of a ustar header's fields.
constexpr size_t kName = 0, kNameBytes = 100;
constexpr size_t kMode = 100, kOwner = 108, kGroup = 116, kNumberBytes = 8;
constexpr size_t kSize = 124, kTime = 136, kLongNumberBytes = 12;
constexpr size_t kChecksum = 148, kType = 156, kMagic = 257;
// The largest size of 11 octal digits.
constexpr uint64_t kMaxSize = (uint64_t{1} << 33) - 1;

void PutNumber(std::string& block, size_t at, size_t width, uint64_t number) {
  for (size_t i = width - 1; i > 0; i--) {
    block[at + i - 1] = static_cast<char>('0' + number % 8);
    number /= 8;
  }
}

std::string Block(std::string_view path, uint64_t size, char type) {
  std::string block(kTarBlock, '\0');
  std::ranges::copy(path.substr(0, kNameBytes), block.begin() + kName);
  PutNumber(block, kMode, kNumberBytes, 0644);
  PutNumber(block, kOwner, kNumberBytes, 0);
  PutNumber(block, kGroup, kNumberBytes, 0);
  PutNumber(block, kSize, kLongNumberBytes, size);
  PutNumber(block, kTime, kLongNumberBytes, 0);
  block[kType] = type;
  std::ranges::copy(std::string_view("ustar\0"
                                     "00",
                                     8),
                    block.begin() + kMagic);
  // The sum over the block, in which the checksum's own eight bytes count as spaces.
  std::fill_n(block.begin() + kChecksum, kNumberBytes, ' ');
  const uint64_t sum =
      std::accumulate(block.begin(), block.end(), uint64_t{0},
                      [](uint64_t a, char c) { return a + static_cast<unsigned char>(c); });
  PutNumber(block, kChecksum, kNumberBytes - 1, sum);
  block[kChecksum + 6] = '\0';
  return block;
}

// "LENGTH KEY=VALUE\n": LENGTH counts its own digits, too.
std::string Record(std::string_view key, std::string_view value) {
  const size_t rest = key.size() + value.size() + 3;
  size_t length = rest + 1;
  while (std::to_string(length).size() + rest != length) length++;
  return std::to_string(length) + " " + std::string(key) + "=" + std::string(value) + "\n";
}

}  // namespace

std::string TarHeader(std::string_view path, uint64_t size) {
  std::string records;
  if (path.size() > kNameBytes) records += Record("path", path);
  if (size > kMaxSize) records += Record("size", std::to_string(size));
  std::string header;
  if (!records.empty()) {
    header = Block("weft", records.size(), 'x') + records;
    header.append(TarPadding(records.size()), '\0');
  }
  return header + Block(path, size > kMaxSize ? 0 : size, '0');
}

}  // namespace weft::relay_api
