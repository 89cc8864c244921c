// SPDX-License-Identifier: Apache-2.0
// Headers of a tar archive: ustar (POSIX.1-1988), with an extended header of pax (POSIX.1-2001)
// before a file whose path or size does not fit. Thread-safety: pure functions.
#ifndef WEFT_RELAY_API_TAR_H_
#define WEFT_RELAY_API_TAR_H_

#include <cstdint>
#include <string>
#include <string_view>

namespace weft::relay_api {

inline constexpr uint64_t kTarBlock = 512;
// Two blocks of zeros end an archive.
inline constexpr uint64_t kTarEnd = 2 * kTarBlock;

// What stands before the bytes of a regular file: whole blocks.
std::string TarHeader(std::string_view path, uint64_t size);

// How many zeros stand behind `size` bytes of a file.
inline uint64_t TarPadding(uint64_t size) { return (kTarBlock - size % kTarBlock) % kTarBlock; }

}  // namespace weft::relay_api

#endif  // WEFT_RELAY_API_TAR_H_
