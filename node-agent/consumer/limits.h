// SPDX-License-Identifier: Apache-2.0
// Limits and times of the consumer, all in one place.
#ifndef WEFT_NODE_AGENT_CONSUMER_LIMITS_H_
#define WEFT_NODE_AGENT_CONSUMER_LIMITS_H_

#include <cstddef>
#include <cstdint>

#include "lib/ipc/limits.h"

namespace weft::consumer {

// --- memory ----------------------------------------------------------------------------------

// A copy of ring memory at a time: large enough that a pread's fixed cost vanishes and that most
// records fit, small enough that the copies of a few slots stay in the second-level cache. A record
// that is larger gets a buffer of its size.
inline constexpr size_t kChunkBytes = 72 * 1024;
// Buffers of larger records are as large as a multiple of it.
inline constexpr size_t kLargeChunkStep = 64 * 1024;
// Smallest copy buffer.
inline constexpr size_t kMinChunkBytes = 4096;
// Looking for long runs costs a look at every slot that has something; after a run that was shorter
// than kLongRun records per such slot, so many are taken without.
inline constexpr size_t kLongRun = 4;
inline constexpr size_t kRunsWithoutLook = 64;
// Copy buffers of one channel together. A slot that gets none waits for the next round.
inline constexpr size_t kMaxChunkMemory = 64 * 1024 * 1024;
inline constexpr size_t kPacketCapacity = 1024 * 1024;
// A packet whose first record has no room in kPacketCapacity. It is given back when it was written.
inline constexpr size_t kLargePacketCapacity = 2 * kPacketCapacity;
inline constexpr size_t kMaxRingsPerChannel = ipc::kMaxOpenRings;
inline constexpr uint32_t kMaxClassesPerChannel = 16384;
// Classes that one event has beside its first one, by which of its texts are empty: enough for all
// combinations of six.
inline constexpr uint32_t kMaxTextClassesPerEvent = 63;
inline constexpr size_t kMaxClassBytesPerChannel = 64 * 1024 * 1024;
inline constexpr uint32_t kMaxChannels = 256;
inline constexpr uint32_t kMaxCpus = 8192;
// A stream's count of missing events, as far as programs say it: 2^64 - 1 means "unknown" to
// babeltrace2 2.0, which aborts at it, and a count never falls. No honest program comes near it.
inline constexpr uint64_t kMaxMissing = uint64_t{1} << 62;

// --- time (nanoseconds) ----------------------------------------------------------------------

// A record is merged when it is so old: 2 % of records become visible later than another CPU's
// newer ones, by up to milliseconds where virtual CPUs are taken away.
inline constexpr uint64_t kHorizonLag = 20'000'000;
// What is promised not to come any more is so much older: a ring that is found late still has its
// place among the others, where its CPU's stream has nothing newer yet.
inline constexpr uint64_t kPromiseLag = 1'000'000'000;
// Merge delay for a ring that would overflow within kHurryTime. Events may then be delivered out of
// order (counted as late), but none is lost.
inline constexpr uint64_t kShortLag = 200'000;
// That is so where a ring, at the speed of the last kSpeedWindow, would be full in less than
// kHurryTime; and for kHurryHold after it.
inline constexpr uint64_t kHurryTime = 200'000'000;
inline constexpr uint64_t kSpeedWindow = 2'000'000;
inline constexpr uint64_t kHurryHold = 50'000'000;
// Between two looks at the rings' counters, when these rose: so long that the merge waits until the
// rise can be counted, kHorizonLag. Much longer than that, so that a ring that is full anyway
// discards little more.
inline constexpr uint64_t kLongRise = 100'000'000;
// Where ring sets arrive so late that their records are older than what is merged, nothing newer
// than the last one that arrived is merged: for so long after each of them, and never less than
// what is so old.
inline constexpr uint64_t kBehindHold = 100'000'000;
inline constexpr uint64_t kMaxBehind = 5'000'000'000;
// The owner of an atomic slot may have taken its time and not committed yet; waited for so long.
inline constexpr uint64_t kMaxLockLag = 200'000'000;
// Counters of different CPUs may differ by less than this; a record that is newer is a lie.
inline constexpr uint64_t kClockSlack = 1'000'000;
inline constexpr uint64_t kMaxPacketAge = 1'000'000'000;
inline constexpr uint64_t kCalibrationInterval = 1'000'000'000;
inline constexpr uint64_t kPollPressed = 100'000;
inline constexpr uint64_t kPollHurried = 300'000;
inline constexpr uint64_t kPollBusy = 1'000'000;
inline constexpr uint64_t kPollIdle = 10'000'000;
inline constexpr uint64_t kPollAsleep = 50'000'000;
inline constexpr uint64_t kIdleAfter = 20'000'000;
inline constexpr uint64_t kAsleepAfter = 5'000'000'000;
// A slot's writer that holds the lock when its channel is closed is waited for so long.
inline constexpr uint64_t kCloseWait = 1'000'000'000;

// --- talk ------------------------------------------------------------------------------------

inline constexpr uint64_t kStatsInterval = 100'000'000;
// How long everything waits for a file; after that, what needs it stays in its ring, and the file
// is asked for again after kFileRetry.
inline constexpr uint64_t kFileWait = 5'000'000'000;
inline constexpr uint64_t kFileRetry = 1'000'000'000;
inline constexpr size_t kMaxQueuedFromAgent = 256;

// --- relays ----------------------------------------------------------------------------------

// A relay that does not answer, and an agent that does not connect, are given up for this try.
inline constexpr uint64_t kConnectTime = 10'000'000'000;
// Between two tries; twice as long each time.
inline constexpr uint64_t kMinRetry = 100'000'000;
inline constexpr uint64_t kMaxRetry = 5'000'000'000;
// A recording to a relay that is not there fails after so long.
inline constexpr uint64_t kReadyTime = 5'000'000'000;
// Beacons of streams that changed, and of all.
inline constexpr uint64_t kBeaconInterval = 100'000'000;
inline constexpr uint64_t kAllBeaconsInterval = 1'000'000'000;
inline constexpr size_t kRelayReadBytes = 64 * 1024;
// At the end of the process, for what is on its way; the keeper kills later than that.
inline constexpr uint64_t kLastWait = 5'000'000'000;

// --- work ------------------------------------------------------------------------------------

// What one channel may copy before it is the next one's turn.
inline constexpr uint64_t kBytesPerRound = 16 * 1024 * 1024;
// A slot's data that is in no commit yet, as a part of its ring, that makes one due.
inline constexpr uint64_t kFlushFraction = 4;

}  // namespace weft::consumer

#endif  // WEFT_NODE_AGENT_CONSUMER_LIMITS_H_
