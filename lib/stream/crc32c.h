// SPDX-License-Identifier: Apache-2.0
// CRC-32C (Castagnoli, RFC 3720 appendix B.4), with the processor's instruction where it has one.
// Thread-safety: pure function.
#ifndef WEFT_LIB_STREAM_CRC32C_H_
#define WEFT_LIB_STREAM_CRC32C_H_

#include <cstdint>

#include "lib/base/bytes.h"

namespace weft::stream {

// Returns the CRC of `bytes` behind others with the CRC `before`; 0: behind nothing.
uint32_t Crc32c(Bytes bytes, uint32_t before = 0);

// Like Crc32c, without the processor's instruction.
uint32_t Crc32cPortable(Bytes bytes, uint32_t before = 0);

}  // namespace weft::stream

#endif  // WEFT_LIB_STREAM_CRC32C_H_
