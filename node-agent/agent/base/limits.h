// SPDX-License-Identifier: Apache-2.0
// Limits and names of the agent.
#ifndef WEFT_NODE_AGENT_AGENT_BASE_LIMITS_H_
#define WEFT_NODE_AGENT_AGENT_BASE_LIMITS_H_

#include <chrono>
#include <cstddef>

namespace weft::agent {

// In local mode: the one consumer, the one session (its file), the socket of the cli.
inline constexpr const char* kConsumerName = "local";
inline constexpr const char* kLocalSession = "session";
inline constexpr const char* kClientsSocket = "session.sock";
// What the keeper keeps, by name; behind it a consumer's name.
inline constexpr const char* kJournalKey = "journal/";

// How often deadlines (durations of Traces) are looked at.
inline constexpr std::chrono::milliseconds kTick{50};
// A Sync that takes longer waits for descriptors.
inline constexpr std::chrono::milliseconds kSyncPatience{300};
// How often processes are searched for memory that was not announced; sooner after a start, when
// processes that run already make their ring sets.
inline constexpr std::chrono::milliseconds kLookInterval{1000};
inline constexpr std::chrono::milliseconds kFirstLooks[] = {
    std::chrono::milliseconds{10}, std::chrono::milliseconds{50}, std::chrono::milliseconds{250}};
// A process that is new may still become (by exec) one with the library in it.
inline constexpr uint32_t kRoundsOfNewProcesses = 3;
// Memory that no process mapped for this many rounds is forgotten.
inline constexpr uint64_t kRoundsUnmapped = 3;
// Memory that is no ring set yet may be one in the making; after this many rounds it is none.
inline constexpr uint32_t kTriesOfUnfinished = 5;
// Mappings opened of one process in one round: a tenant can map as many as it likes.
inline constexpr size_t kMaxOpenedPerLook = 64;
// Text of one /proc/PID/maps: some 65530 mappings, the kernel's usual limit, are less.
inline constexpr size_t kMaxMapsBytes = size_t{16} << 20;
inline constexpr uint32_t kMaxHugePageTries = 20;
inline constexpr std::chrono::milliseconds kHugePageRetry{100};
// Control areas of processes; what is written into one (some 100 KiB) may be charged to the agent.
inline constexpr size_t kMaxAdoptedAreas = 1024;
// In a cluster. The loop looks at deadlines every kTick: when it did not for this long, it hangs.
inline constexpr std::chrono::seconds kStuckTime{30};
// The search for the kubelet's folder in the hierarchy of cgroups: at most this deep below its
// root, through at most this many folders.
inline constexpr int kMaxKubepodsDepth = 5;
inline constexpr size_t kMaxCgroupsLookedAt = 16384;
// How often cgroups of pods that are starting are looked for.
inline constexpr std::chrono::milliseconds kCgroupInterval{200};
// How often files that are probed are looked for in containers that lack them; how many of them a
// session may have open at a time.
inline constexpr std::chrono::seconds kProbeInterval{5};
inline constexpr size_t kMaxProbedFiles = 256;
// How often a kernel module that could not be had is tried again while a Trace asks for it: an
// administrator may have installed it.
inline constexpr std::chrono::seconds kDriverRetry{60};
// How often counters for /metrics are summed up; Prometheus asks every few seconds.
inline constexpr std::chrono::milliseconds kCountInterval{200};
// Counts alone are no reason to write a status more often.
inline constexpr std::chrono::seconds kCountsSaid{30};
// Traces that ended and still have counters: what a scrape grows to is bounded.
inline constexpr size_t kMaxEndedTraces = 1024;
// The last ones are kept; each is a line for people.
inline constexpr size_t kMaxNotices = 64;
// What events of the kernel lack: at most this many things are told for a rule, each with at most
// this many events by name.
inline constexpr size_t kMaxAbsences = 8;
inline constexpr size_t kMaxNamedEvents = 3;
// Text of a CreateSession; lib/api has the limit of one document.
inline constexpr size_t kMaxTracesBytes = size_t{4} << 20;
// How long records are kept for a relay that does not take them, after their Trace was deleted or
// the cli has gone.
inline constexpr std::chrono::seconds kLastRelayWait{60};
// How long the rings of weft.ko are read at the end of the node's agent. Kubernetes kills its pod
// 30 s after it asked for the end, unless told otherwise, and the other processes end after this.
inline constexpr std::chrono::seconds kLastDrainWait{5};
// Connections to relays. Two for every Trace and consumer, of which few are being made at a time.
inline constexpr size_t kMaxDials = 64;
inline constexpr std::chrono::seconds kDialTime{5};
// How long bytes may stay unacknowledged by a relay's machine, and how long a connection may be
// idle before it is probed; then the connection ends.
inline constexpr std::chrono::seconds kRelaySilence{30};
inline constexpr int kRelayKeepIdle = 10;  // seconds
// Messages to a slow consumer are made when there is room: this bounds the reasons to make one.
inline constexpr size_t kMaxConsumerBacklog = 1 << 20;

}  // namespace weft::agent

#endif  // WEFT_NODE_AGENT_AGENT_BASE_LIMITS_H_
