// SPDX-License-Identifier: Apache-2.0
// Limits and times of the relay's listeners, all in one place. lib/stream/limits.h has those of
// the protocol.
#ifndef WEFT_RELAY_INGEST_LIMITS_H_
#define WEFT_RELAY_INGEST_LIMITS_H_

#include <chrono>
#include <cstddef>

namespace weft::ingest {

// Connections of each kind; a node has one session per Trace. Each session costs two descriptors
// and a buffer as long as a packet.
inline constexpr size_t kMaxSessions = 4096;
// Open files; a trace with one stream has two.
inline constexpr size_t kMaxOpenStreams = 256 * 1024;
// Stored packets of a stream of which the relay remembers where they end, until the node keeps them.
// A node sends one or two before it does.
inline constexpr size_t kMaxUnkeptPackets = 256;
// Streams whose events were counted in this life of the relay: some 100 bytes each.
inline constexpr size_t kMaxCountedStreams = 1024 * 1024;
// A peer that has not sent hello within this time is no node of weft's.
inline constexpr std::chrono::seconds kHelloTime{10};
// The relay notices a node that died without closing its connections after kKeepIdle + kKeepCount *
// kKeepInterval seconds.
inline constexpr int kKeepIdle = 30;
inline constexpr int kKeepInterval = 10;
inline constexpr int kKeepCount = 3;
inline constexpr size_t kControlReadBytes = size_t{64} * 1024;
inline constexpr int kListenBacklog = 1024;

// The ingest's loop sets a mark every kBeat; /healthz fails when it did not for kSilence.
inline constexpr std::chrono::milliseconds kBeat{500};
inline constexpr std::chrono::seconds kSilence{10};
// How long the relay waits after SIGTERM for the last acknowledgements to be sent.
inline constexpr std::chrono::milliseconds kDrainTime{500};

}  // namespace weft::ingest

#endif  // WEFT_RELAY_INGEST_LIMITS_H_
