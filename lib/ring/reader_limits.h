// SPDX-License-Identifier: Apache-2.0
// All limits of the reading side, in one place. A value that exceeds one is refused or counted,
// never followed.
#ifndef WEFT_LIB_RING_READER_LIMITS_H_
#define WEFT_LIB_RING_READER_LIMITS_H_

#include <cstdint>

namespace weft::ring {

// A ring set is sparse and read by pread, so its size costs a reader nothing; 4096 CPUs with 64 MiB
// each fit.
inline constexpr uint64_t kMaxTotalSize = uint64_t{1} << 40;
// Most bytes that are mapped: header and slots. 4097 slots of 128 bytes are 513 KiB; the rest is
// room for slots that grow in later minor versions.
inline constexpr uint64_t kMaxMappedBytes = uint64_t{4} << 20;
inline constexpr uint32_t kMaxHeaderSize = 4096;
inline constexpr uint32_t kMaxSlotSize = 512;
// Most bytes of descriptions of one ring set. They are enough for a program with 4,000 events of 4
// KiB each.
inline constexpr uint64_t kMaxDescriptionsSize = uint64_t{16} << 20;
inline constexpr uint32_t kMaxDescriptions = 16384;
// Bytes that one look at the descriptions may copy; the next look goes on from there.
inline constexpr uint64_t kDescriptionsPerPoll = uint64_t{1} << 20;
// Number of attempts of a look if head moves meanwhile; then the next round looks.
inline constexpr int kHeadTries = 8;

}  // namespace weft::ring

#endif  // WEFT_LIB_RING_READER_LIMITS_H_
