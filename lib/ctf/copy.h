// SPDX-License-Identifier: Apache-2.0
// Copies a few dozen bytes whose number is known only at run time, as events consist of: without a
// function call, with overlapping loads and stores. Thread-safety: pure function.
#ifndef WEFT_LIB_CTF_COPY_H_
#define WEFT_LIB_CTF_COPY_H_

#include <cstddef>
#include <cstdint>
#include <cstring>

namespace weft::ctf {

// The ranges do not overlap.
inline void CopyBytes(uint8_t* to, const uint8_t* from, size_t bytes) {
  struct Block {
    uint64_t low, high;
  };
  const auto move = [&]<typename T>(T, size_t at) {
    T value;
    std::memcpy(&value, from + at, sizeof(T));
    std::memcpy(to + at, &value, sizeof(T));
  };
  if (bytes > 128) {
    std::memcpy(to, from, bytes);
  } else if (bytes >= sizeof(Block)) {
    for (size_t at = 0; at + sizeof(Block) < bytes; at += sizeof(Block)) move(Block{}, at);
    move(Block{}, bytes - sizeof(Block));
  } else if (bytes >= 8) {
    move(uint64_t{}, 0);
    move(uint64_t{}, bytes - 8);
  } else if (bytes >= 4) {
    move(uint32_t{}, 0);
    move(uint32_t{}, bytes - 4);
  } else {
    for (size_t at = 0; at < bytes; at++) to[at] = from[at];
  }
}

inline constexpr size_t kCopyBlock = 16;

// Copies more than kCopyBlock * (kBlocks - 1) bytes, at most kCopyBlock * kBlocks: without a
// branch.
template <size_t kBlocks>
inline void CopyBlocks(uint8_t* to, const uint8_t* from, size_t bytes) {
  static_assert(kBlocks > 1);
  struct Block {
    uint8_t bytes[kCopyBlock];
  };
  Block blocks[kBlocks];
  for (size_t i = 0; i + 1 < kBlocks; i++)
    std::memcpy(&blocks[i], from + i * kCopyBlock, kCopyBlock);
  std::memcpy(&blocks[kBlocks - 1], from + bytes - kCopyBlock, kCopyBlock);
  for (size_t i = 0; i + 1 < kBlocks; i++) std::memcpy(to + i * kCopyBlock, &blocks[i], kCopyBlock);
  std::memcpy(to + bytes - kCopyBlock, &blocks[kBlocks - 1], kCopyBlock);
}

}  // namespace weft::ctf

#endif  // WEFT_LIB_CTF_COPY_H_
