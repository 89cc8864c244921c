// SPDX-License-Identifier: Apache-2.0
// Limits and times of the relay's listeners, all in one place. lib/stream/limits.h has those of
// the protocol.
#ifndef WEFT_RELAY_INGEST_LIMITS_H_
#define WEFT_RELAY_INGEST_LIMITS_H_

#include <chrono>
#include <cstddef>
#include <cstdint>

namespace weft::ingest {

// Sessions that were welcomed; a node has one per Trace. Each costs two descriptors and a buffer as
// long as a packet. In a cluster there is at most one for each TraceSession: a new one ends the
// session before it.
inline constexpr size_t kMaxSessions = 4096;
// Connections that have not been welcomed, of both ports together, and the bytes that one of them
// costs at most: OpenSSL's state and what was not read yet. When there are more, the address that
// has most of them loses the one that has waited longest (lib/http/connection_budget.h).
inline constexpr size_t kMaxStrangers = 1024;
inline constexpr size_t kStrangerBytes = size_t{64} * 1024;
// Bytes that a peer may send before it is welcomed: offer and hello, whose longest part is a
// ticket.
inline constexpr size_t kMaxBytesBeforeWelcome = size_t{32} * 1024;
// Bytes that wait to be sent to a node that does not read. Answers are short: a node that reads
// never has so much before it.
inline constexpr size_t kMaxBacklog = size_t{8} * 1024 * 1024;
// Open files; a trace with one stream has two.
inline constexpr size_t kMaxOpenStreams = 256 * 1024;
// Stored packets of a stream of which the relay remembers where they end, until the node keeps
// them. A node sends one or two before it does.
inline constexpr size_t kMaxUnkeptPackets = 256;
// Streams whose events were counted in this life of the relay: some 100 bytes each.
inline constexpr size_t kMaxCountedStreams = 1024 * 1024;
// A peer that has not sent hello within this time is no node of weft's.
inline constexpr std::chrono::seconds kHelloTime{10};
// A welcomed session opens its data connection within this time.
inline constexpr std::chrono::seconds kDataTime{30};
// A node may hear of its TraceSession sooner than the relay does: for so long the relay waits for
// it, and looks again every kSessionLook.
inline constexpr std::chrono::seconds kSessionWait{3};
inline constexpr std::chrono::milliseconds kSessionLook{50};
// Every so often the relay looks for sessions whose TraceSession has gone.
inline constexpr std::chrono::seconds kOrphanLook{5};
// A peer has this time to take the last bytes of a connection, which say why it ends.
inline constexpr std::chrono::seconds kLastWordsTime{5};
// The relay notices a node that died without closing its connections after kKeepIdle + kKeepCount *
// kKeepInterval seconds.
inline constexpr int kKeepIdle = 30;
inline constexpr int kKeepInterval = 10;
inline constexpr int kKeepCount = 3;
inline constexpr size_t kControlReadBytes = size_t{64} * 1024;
inline constexpr size_t kCipherReadBytes = size_t{256} * 1024;
// After so many bytes of one peer it is the others' turn; a read counts kReadCost more.
inline constexpr size_t kTurnBytes = size_t{1024} * 1024;
inline constexpr size_t kReadCost = 4096;
// Lines of the log about refused sessions: a few of each second, with the count of those that were
// left out.
inline constexpr double kRefusalLines = 5;
inline constexpr double kRefusalLinesAtOnce = 50;
inline constexpr int kListenBacklog = 1024;

// Folders of a CTF trace are up to eleven deep.
inline constexpr size_t kMaxScanDepth = 16;
// Chunks are not made smaller than this for a small share with many streams, nor shorter than this
// for a short age: each chunk is a file.
inline constexpr uint64_t kMinChunkBytes = uint64_t{256} << 10;
inline constexpr std::chrono::seconds kMinChunkTime{60};
// A stream's last packet is not removed before: a node whose consumer was killed just then is back
// by then, and has cut off what it did not know to be stored.
inline constexpr std::chrono::seconds kSettled{600};
// The volume's free space is looked at once for so many bytes.
inline constexpr uint64_t kFreeCheckBytes = uint64_t{1} << 20;
// Chunks that grow old end, and old ones are removed, this often.
inline constexpr std::chrono::seconds kTick{1};

// The ingest's loop sets a mark every kBeat; /healthz fails when it did not for kSilence.
inline constexpr std::chrono::milliseconds kBeat{500};
inline constexpr std::chrono::seconds kSilence{10};
// How long the relay waits after SIGTERM for the last acknowledgements to be sent.
inline constexpr std::chrono::milliseconds kDrainTime{500};

}  // namespace weft::ingest

#endif  // WEFT_RELAY_INGEST_LIMITS_H_
