// SPDX-License-Identifier: Apache-2.0
// Limits of the stream protocol, for both sides.
#ifndef WEFT_LIB_STREAM_LIMITS_H_
#define WEFT_LIB_STREAM_LIMITS_H_

#include <cstddef>
#include <cstdint>

namespace weft::stream {

// Size of a control message. The largest description of an event has 256 KiB (lib/abi/event.h); as
// metadata it is longer, and JSON escapes every quotation mark and line end of it.
inline constexpr size_t kMaxControlBytes = 8 * 1024 * 1024;
// Length of a name in an identity: Kubernetes' longest names have 253 characters.
inline constexpr size_t kMaxNameBytes = 253;
inline constexpr size_t kMaxPathBytes = 512;
inline constexpr size_t kMaxTicketBytes = 8 * 1024;

// Traces and streams of one session (a node and a Trace): a trace for each container of the node, a
// stream for each of its CPUs.
inline constexpr size_t kMaxTraces = 1024;
inline constexpr size_t kMaxStreams = 64 * 1024;
// Traces share the time of a beacon if theirs are at most this far apart. A reader of the whole
// Trace waits for the oldest anyway.
inline constexpr uint64_t kMaxPromiseSpread = 10'000'000;  // ns
// Streams in one `sent` or `beacon`.
inline constexpr size_t kMaxBeaconStreams = kMaxStreams;
// Reasons in one report of losses.
inline constexpr size_t kMaxReasons = 64;

// Packets behind a gap that wait in the relay until the gap is filled. A packet that does not fit
// is dropped, and requested again with the gap.
inline constexpr size_t kMaxHeldPackets = 64;
inline constexpr size_t kMaxHeldBytes = 16 * 1024 * 1024;

// Bytes that wait to be sent on a control connection. A peer that does not read is given up.
inline constexpr size_t kMaxControlBacklog = 64 * 1024 * 1024;

}  // namespace weft::stream

#endif  // WEFT_LIB_STREAM_LIMITS_H_
