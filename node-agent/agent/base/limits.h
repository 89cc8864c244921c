// SPDX-License-Identifier: Apache-2.0
// Limits and names of the agent.
#ifndef WEFT_NODE_AGENT_AGENT_BASE_LIMITS_H_
#define WEFT_NODE_AGENT_AGENT_BASE_LIMITS_H_

#include <chrono>
#include <cstddef>

namespace weft::agent {

// Of local mode: the one consumer, the one session (its file), who controls it.
inline constexpr const char* kConsumerName = "local";
inline constexpr const char* kLocalSession = "session";
inline constexpr const char* kClientsSocket = "session.sock";
// What the keeper keeps, by name; behind it a consumer's name.
inline constexpr const char* kJournalKey = "journal/";

// Deadlines (durations of Traces) are looked at so often.
inline constexpr std::chrono::milliseconds kTick{50};
// A Sync that takes longer waits for descriptors.
inline constexpr std::chrono::milliseconds kSyncPatience{300};
// Processes are looked through for memory that was not announced so often; after a start sooner,
// since then processes that run already make their ring sets.
inline constexpr std::chrono::milliseconds kLookInterval{1000};
inline constexpr std::chrono::milliseconds kFirstLooks[] = {
    std::chrono::milliseconds{10}, std::chrono::milliseconds{50}, std::chrono::milliseconds{250}};
// A process that is new may still become (by exec) one with the library in it.
inline constexpr uint32_t kRoundsOfNewProcesses = 3;
// Memory that nobody mapped for so many rounds is forgotten.
inline constexpr uint64_t kRoundsUnmapped = 3;
// What is no ring set yet may be one in the making; after so many rounds it never will be.
inline constexpr uint32_t kTriesOfUnfinished = 5;
// Of one process in one round: a tenant can map as many as it likes.
inline constexpr size_t kMaxOpenedPerLook = 64;
// Text of one /proc/PID/maps: some 65530 mappings, the kernel's usual limit, are less.
inline constexpr size_t kMaxMapsBytes = size_t{16} << 20;
inline constexpr uint32_t kMaxHugePageTries = 20;
inline constexpr std::chrono::milliseconds kHugePageRetry{100};
// Control areas of processes; what is written into one (some 100 KiB) may be charged to the agent.
inline constexpr size_t kMaxAdoptedAreas = 1024;
// In a cluster. The loop looks at deadlines every kTick: silent for so long, it hangs.
inline constexpr std::chrono::seconds kStuckTime{30};
// The kubelet's folder in the hierarchy of cgroups: so deep below its root, so many folders on the
// way.
inline constexpr int kMaxKubepodsDepth = 5;
inline constexpr size_t kMaxCgroupsLookedAt = 16384;
// Cgroups of pods that are starting are looked for so often.
inline constexpr std::chrono::milliseconds kCgroupInterval{200};
// Files that are probed are looked for so often in containers that lack them; so many are open at a
// time, for a session.
inline constexpr std::chrono::seconds kProbeInterval{5};
inline constexpr size_t kMaxProbedFiles = 256;
// A kernel module that could not be had is tried again so often while a Trace asks for it: somebody
// may have brought it.
inline constexpr std::chrono::seconds kDriverRetry{60};
// Counters for /metrics are summed up so often; Prometheus asks every few seconds.
inline constexpr std::chrono::milliseconds kCountInterval{200};
// Counts alone are no reason to write a status more often.
inline constexpr std::chrono::seconds kCountsSaid{30};
// Traces that ended and still have counters: what a scrape grows to is bounded.
inline constexpr size_t kMaxEndedTraces = 1024;
// The last ones are kept; each is a line for people.
inline constexpr size_t kMaxNotices = 64;
// Of what events of the kernel lack: so many things are told of a rule's, each with so many events
// by name.
inline constexpr size_t kMaxAbsences = 8;
inline constexpr size_t kMaxNamedEvents = 3;
// Text of a CreateSession; lib/api has the limit of one document.
inline constexpr size_t kMaxTracesBytes = size_t{4} << 20;
// Nobody waits for the end any more, and a relay does not take what is left: kept for so long.
inline constexpr std::chrono::seconds kLastRelayWait{60};
// The same where the node's agent ends: Kubernetes kills its pod 30 s after it asked for the end,
// unless told otherwise, and the other processes end after this.
inline constexpr std::chrono::seconds kLastDrainWait{5};
// Connections to relays. Two for every Trace and consumer, of which few are being made at a time.
inline constexpr size_t kMaxDials = 64;
inline constexpr std::chrono::seconds kDialTime{5};
// Of bytes that a relay's machine does not acknowledge, then the connection ends; and of a
// connection without any.
inline constexpr std::chrono::seconds kRelaySilence{30};
inline constexpr int kRelayKeepIdle = 10;  // seconds
// Messages to a slow consumer are made when there is room: this bounds the reasons to make one.
inline constexpr size_t kMaxConsumerBacklog = 1 << 20;

}  // namespace weft::agent

#endif  // WEFT_NODE_AGENT_AGENT_BASE_LIMITS_H_
