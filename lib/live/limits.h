// SPDX-License-Identifier: Apache-2.0
// Limits of the lttng-live protocol's server.
#ifndef WEFT_LIB_LIVE_LIMITS_H_
#define WEFT_LIB_LIVE_LIMITS_H_

#include <cstddef>
#include <cstdint>

namespace weft::live {

// The longest payload of a command: CONNECT and ATTACH have 20 bytes. A viewer that announces more
// does not speak this protocol.
inline constexpr uint64_t kMaxPayloadBytes = 64;
// While more than this waits to be sent to a viewer, its next command waits, too. One answer may be
// longer: a list of streams (4,371 bytes each), or a part of a packet.
inline constexpr size_t kMaxOutBytes = size_t{1} << 20;
// The longest part of a packet in one answer. babeltrace2 asks for at most 256 KiB.
inline constexpr uint32_t kMaxPartBytes = uint32_t{4} << 20;

}  // namespace weft::live

#endif  // WEFT_LIB_LIVE_LIMITS_H_
