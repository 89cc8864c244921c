// SPDX-License-Identifier: GPL-2.0-only
// Bytes as tests and pages write them: "00 ff 12 ", a blank behind each.
#ifndef WEFT_KMOD_TESTS_HEX_H_
#define WEFT_KMOD_TESTS_HEX_H_

#include <charconv>
#include <cstdint>
#include <string_view>
#include <vector>

namespace weft::kmod {

inline std::vector<uint8_t> Bytes(std::string_view hex) {
  std::vector<uint8_t> bytes;
  for (size_t at = 0; at + 2 <= hex.size(); at += 3) {
    uint8_t byte = 0;
    std::from_chars(hex.data() + at, hex.data() + at + 2, byte, 16);
    bytes.push_back(byte);
  }
  return bytes;
}

}  // namespace weft::kmod

#endif  // WEFT_KMOD_TESTS_HEX_H_
