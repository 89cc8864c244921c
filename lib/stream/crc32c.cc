// SPDX-License-Identifier: Apache-2.0
// See crc32c.h.
#include "lib/stream/crc32c.h"

#include <array>
#include <cstring>

#if defined(__x86_64__)
#include <nmmintrin.h>
#endif

namespace weft::stream {
namespace {

constexpr uint32_t kPolynomial = 0x82f63b78;  // reversed
constexpr size_t kTables = 8;

// tables[k][b]: the CRC of byte b followed by k zero bytes.
constexpr std::array<std::array<uint32_t, 256>, kTables> MakeTables() {
  std::array<std::array<uint32_t, 256>, kTables> tables{};
  for (uint32_t b = 0; b < 256; b++) {
    uint32_t crc = b;
    for (int bit = 0; bit < 8; bit++) crc = crc >> 1 ^ (crc & 1 ? kPolynomial : 0);
    tables[0][b] = crc;
  }
  for (uint32_t b = 0; b < 256; b++) {
    for (size_t k = 1; k < kTables; k++) {
      tables[k][b] = tables[k - 1][b] >> 8 ^ tables[0][tables[k - 1][b] & 0xff];
    }
  }
  return tables;
}

constexpr auto kTable = MakeTables();

#if defined(__x86_64__)
// The instruction takes three cycles, and the processor begins one in each cycle. So three lanes of
// the bytes are computed at the same time, the second and third from a register of 0. A CRC without
// the inversions is linear: what it is behind a lane is what it would be behind as many zeros, XOR
// the CRC that began with 0.
constexpr size_t kLaneBytes = 2048;

constexpr uint32_t BehindZeros(uint32_t crc, size_t bytes) {
  for (size_t i = 0; i < bytes; i++) crc = crc >> 8 ^ kTable[0][crc & 0xff];
  return crc;
}

// tables[k][b]: what the register b << 8k is behind kLaneBytes zeros.
constexpr std::array<std::array<uint32_t, 256>, 4> MakeLaneTables() {
  std::array<std::array<uint32_t, 256>, 4> tables{};
  for (uint32_t bit = 0; bit < 32; bit++) {
    const uint32_t behind = BehindZeros(uint32_t{1} << bit, kLaneBytes);
    for (uint32_t b = 0; b < 256; b++) {
      if ((b >> bit % 8 & 1) != 0) tables[bit / 8][b] ^= behind;
    }
  }
  return tables;
}

constexpr auto kLaneTable = MakeLaneTables();

uint32_t BehindLane(uint32_t crc) {
  return kLaneTable[0][crc & 0xff] ^ kLaneTable[1][crc >> 8 & 0xff] ^
         kLaneTable[2][crc >> 16 & 0xff] ^ kLaneTable[3][crc >> 24];
}

uint64_t WordAt(const uint8_t* at) {
  uint64_t word = 0;
  std::memcpy(&word, at, sizeof(word));
  return word;
}

__attribute__((target("sse4.2"))) uint32_t Crc32cInstruction(Bytes bytes, uint32_t before) {
  uint64_t crc = ~before;
  const uint8_t* at = bytes.data();
  size_t left = bytes.size();
  for (; left >= 3 * kLaneBytes; at += 3 * kLaneBytes, left -= 3 * kLaneBytes) {
    uint64_t second = 0;
    uint64_t third = 0;
    for (size_t i = 0; i < kLaneBytes; i += 8) {
      crc = _mm_crc32_u64(crc, WordAt(at + i));
      second = _mm_crc32_u64(second, WordAt(at + kLaneBytes + i));
      third = _mm_crc32_u64(third, WordAt(at + 2 * kLaneBytes + i));
    }
    crc = BehindLane(static_cast<uint32_t>(crc)) ^ second;
    crc = BehindLane(static_cast<uint32_t>(crc)) ^ third;
  }
  for (; left >= 8; at += 8, left -= 8) crc = _mm_crc32_u64(crc, WordAt(at));
  auto narrow = static_cast<uint32_t>(crc);
  for (; left > 0; at++, left--) narrow = _mm_crc32_u8(narrow, *at);
  return ~narrow;
}
#endif

}  // namespace

uint32_t Crc32cPortable(Bytes bytes, uint32_t before) {
  uint32_t crc = ~before;
  const uint8_t* at = bytes.data();
  size_t left = bytes.size();
  for (; left >= 8; at += 8, left -= 8) {
    uint64_t word = 0;
    std::memcpy(&word, at, sizeof(word));
    word ^= crc;
    crc = 0;
    for (size_t k = 0; k < kTables; k++) {
      crc ^= kTable[kTables - 1 - k][word >> (8 * k) & 0xff];
    }
  }
  for (; left > 0; at++, left--) crc = crc >> 8 ^ kTable[0][(crc ^ *at) & 0xff];
  return ~crc;
}

uint32_t Crc32c(Bytes bytes, uint32_t before) {
#if defined(__x86_64__)
  static const bool has_instruction = __builtin_cpu_supports("sse4.2") != 0;
  if (has_instruction) return Crc32cInstruction(bytes, before);
#endif
  return Crc32cPortable(bytes, before);
}

}  // namespace weft::stream
