// SPDX-License-Identifier: Apache-2.0
// Limits and times of the consumer, all in one place.
#ifndef WEFT_NODE_AGENT_CONSUMER_LIMITS_H_
#define WEFT_NODE_AGENT_CONSUMER_LIMITS_H_

#include <cstddef>
#include <cstdint>

#include "lib/ipc/limits.h"

namespace weft::consumer {

// --- memory ----------------------------------------------------------------------------------

// Bytes of one copy of ring memory. It is so large that a pread's fixed cost does not matter and
// that most records fit, and so small that the copies of a few slots stay in the second-level
// cache. A larger record gets a buffer of its size.
inline constexpr size_t kChunkBytes = 72 * 1024;
// The size of a larger record's buffer is a multiple of this.
inline constexpr size_t kLargeChunkStep = 64 * 1024;
// Smallest copy buffer.
inline constexpr size_t kMinChunkBytes = 4096;
// To look for a long run costs a look at every slot that has records. If such a look led to a run
// of less than kLongRun records per slot, the next kRunsWithoutLook runs are taken without a look.
inline constexpr size_t kLongRun = 4;
inline constexpr size_t kRunsWithoutLook = 64;
// All copy buffers of one channel together. A slot that gets no buffer waits for the next round.
inline constexpr size_t kMaxChunkMemory = 64 * 1024 * 1024;
// Capacity of a packet.
inline constexpr size_t kPacketCapacity = 1024 * 1024;
// Capacity of a packet whose first record has no room in kPacketCapacity. Its buffer is freed when
// the packet was written.
inline constexpr size_t kLargePacketCapacity = 2 * kPacketCapacity;
// Ring sets of processes that are gone whose container needs its memory back: so many bytes of them
// this consumer takes into its own memory, in chunks.
inline constexpr uint64_t kMaxMovedBytes = 32 * 1024 * 1024;
inline constexpr size_t kMoveChunkBytes = 256 * 1024;
inline constexpr size_t kMaxRingsPerChannel = ipc::kMaxOpenRings;
inline constexpr uint32_t kMaxClassesPerChannel = 16384;
// Classes of one event besides its first one, one for each set of texts that are empty: enough for
// all sets of six texts.
inline constexpr uint32_t kMaxTextClassesPerEvent = 63;
// Events of which people are told that those do not suffice: names are a tenant's, and may be many.
inline constexpr uint32_t kMaxTextNoticesPerChannel = 8;
inline constexpr size_t kMaxClassBytesPerChannel = 64 * 1024 * 1024;
inline constexpr uint32_t kMaxChannels = 256;
inline constexpr uint32_t kMaxCpus = 8192;
// Largest count of missing events in a stream; programs may claim more. 2^64 - 1 means "unknown" to
// babeltrace2 2.0, which aborts at it, and a count never falls. No honest program reaches this.
inline constexpr uint64_t kMaxMissing = uint64_t{1} << 62;

// --- time (nanoseconds) ----------------------------------------------------------------------

// Merge delay: a record is merged at this age. Without it, 2 % of records would be late, since they
// become visible after newer records of another CPU, by up to milliseconds if a virtual CPU lost
// its physical one.
inline constexpr uint64_t kHorizonLag = 20'000'000;
// The promise that no older record will come lies this far behind the merge if the trace goes into
// a folder. Records of a ring that is found late thus keep their times, unless their CPU's stream
// already has newer records. Viewers of a relay's traces wait for the promise, so there it is the
// merge's own time, at most now - kHorizonLag.
inline constexpr uint64_t kPromiseLag = 1'000'000'000;
// Merge delay for a ring that would overflow within kHurryTime. Events may then be delivered out of
// order (counted as late), but none is lost.
inline constexpr uint64_t kShortLag = 200'000;
// A channel hurries if a ring would be full within kHurryTime at the speed of the last
// kSpeedWindow, and for kHurryHold after that.
inline constexpr uint64_t kHurryTime = 200'000'000;
inline constexpr uint64_t kSpeedWindow = 2'000'000;
inline constexpr uint64_t kHurryHold = 50'000'000;
// If counters of missing events rose between two looks that are further apart than this, the merge
// waits, for at most kHorizonLag, until the rise can be counted in its packet. This is much longer
// than kHorizonLag, so that a ring that is full discards few more events for the wait.
inline constexpr uint64_t kLongRise = 100'000'000;
// If a ring set arrives so late that its records may be older than merged ones, others may follow.
// For kBehindHold after each such arrival, the merge stops at the time at which the newest ring set
// was created, but never further back than kMaxBehind.
inline constexpr uint64_t kBehindHold = 100'000'000;
inline constexpr uint64_t kMaxBehind = 5'000'000'000;
// For this long the merge waits for the owner of an atomic slot's lock, which may have read the
// clock for a record that it has not committed yet.
inline constexpr uint64_t kMaxLockLag = 200'000'000;
// The clocks of two CPUs differ by less than this. A record from further in the future is false.
inline constexpr uint64_t kClockSlack = 1'000'000;
// A packet with events is written at this age, full or not. People watch events arrive at a relay.
inline constexpr uint64_t kMaxPacketAge = 1'000'000'000;
inline constexpr uint64_t kMaxRelayPacketAge = 30'000'000;
inline constexpr uint64_t kCalibrationInterval = 1'000'000'000;
// Pauses between two rounds: with a ring that is a quarter full or a commit under way (Pressed);
// with a ring that would soon be full (Hurried); with events in the last kIdleAfter (Busy); without
// (Idle); after kAsleepAfter without events (Asleep).
inline constexpr uint64_t kPollPressed = 100'000;
inline constexpr uint64_t kPollHurried = 300'000;
inline constexpr uint64_t kPollBusy = 1'000'000;
inline constexpr uint64_t kPollIdle = 10'000'000;
inline constexpr uint64_t kPollAsleep = 50'000'000;
inline constexpr uint64_t kIdleAfter = 20'000'000;
inline constexpr uint64_t kAsleepAfter = 5'000'000'000;
// For this long a ring is still read after its channel was closed or its process ended, for a
// writer that goes on.
inline constexpr uint64_t kCloseWait = 1'000'000'000;

// --- talk ------------------------------------------------------------------------------------

inline constexpr uint64_t kStatsInterval = 100'000'000;
// For this long the whole consumer waits for a file. After that, events that need it stay in their
// ring, and the consumer requests the file again after kFileRetry.
inline constexpr uint64_t kFileWait = 5'000'000'000;
inline constexpr uint64_t kFileRetry = 1'000'000'000;
inline constexpr size_t kMaxQueuedFromAgent = 256;

// After this time, a journal that could not be written is tried again.
inline constexpr uint64_t kJournalRetry = 100'000'000;

// --- relays ----------------------------------------------------------------------------------

// For this long an attempt to connect waits for the agent's connection and for the relay's answer.
inline constexpr uint64_t kConnectTime = 10'000'000'000;
// Pause between two tries: kMinRetry at first, then twice as long each time, up to kMaxRetry.
inline constexpr uint64_t kMinRetry = 100'000'000;
inline constexpr uint64_t kMaxRetry = 5'000'000'000;
// A recording fails to start when its relay could not be reached, or refused it, for kReadyTime: a
// user waits for that. A relay that answers late, or closes connections because it has too many,
// has kBusyReadyTime: the cli waits for twice as long.
inline constexpr uint64_t kReadyTime = 5'000'000'000;
inline constexpr uint64_t kBusyReadyTime = 60'000'000'000;
// Least time between two beacons of a trace while no commit ends. Events of its other streams are
// seen later by as much.
inline constexpr uint64_t kBeaconInterval = 20'000'000;
inline constexpr size_t kRelayReadBytes = 64 * 1024;
// Bytes that TLS encrypts before they are sent: so many that the calls do not matter, and so few
// that they stay in the second-level cache.
inline constexpr size_t kTlsBytes = 128 * 1024;
// For this long the process waits at its end for packets that were sent. The keeper kills it later.
inline constexpr uint64_t kLastWait = 5'000'000'000;

// --- work ------------------------------------------------------------------------------------

// Bytes that one channel may copy before it is the next one's turn.
inline constexpr uint64_t kBytesPerRound = 16 * 1024 * 1024;
// A commit is due when a slot holds 1/kFlushFraction of its ring that is in no commit yet.
inline constexpr uint64_t kFlushFraction = 4;

}  // namespace weft::consumer

#endif  // WEFT_NODE_AGENT_CONSUMER_LIMITS_H_
