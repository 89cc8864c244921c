// SPDX-License-Identifier: Apache-2.0
// Limits and names of the agent.
#ifndef WEFT_NODE_AGENT_AGENT_BASE_LIMITS_H_
#define WEFT_NODE_AGENT_AGENT_BASE_LIMITS_H_

#include <chrono>
#include <cstddef>
#include <cstdint>

namespace weft::agent {

// Names in local mode: of the one consumer, of the one session's file, and of the cli's socket.
inline constexpr const char* kConsumerName = "local";
inline constexpr const char* kLocalSession = "session";
inline constexpr const char* kClientsSocket = "session.sock";
// Names of journals at the keeper: this prefix, then the consumer's name.
inline constexpr const char* kJournalKey = "journal/";
// How long the agent waits at its start for processes of an earlier keeper that still have a
// journal, and how often it looks. A consumer whose keeper is gone ends within 5 s; the keeper
// kills an agent that does not answer for 30 s.
inline constexpr std::chrono::seconds kJournalPatience{10};
inline constexpr std::chrono::milliseconds kJournalRetry{20};

// How often the loop checks deadlines (durations of Traces).
inline constexpr std::chrono::milliseconds kTick{50};
// A Sync that takes longer than this is taken to be waiting for descriptors.
inline constexpr std::chrono::milliseconds kSyncPatience{300};
// How often the finder searches processes for memory that was not announced. The first searches
// come sooner, since running processes make their ring sets just after the start.
inline constexpr std::chrono::milliseconds kLookInterval{1000};
inline constexpr std::chrono::milliseconds kFirstLooks[] = {
    std::chrono::milliseconds{10}, std::chrono::milliseconds{50}, std::chrono::milliseconds{250}};
// Rounds in which the finder looks at a new process, since it may still exec a program with the
// library in it.
inline constexpr uint32_t kRoundsOfNewProcesses = 3;
// If processes of a container map its control file in none of so many rounds, the library is not in
// them.
inline constexpr uint32_t kRoundsWithoutLibrary = 5;
// Memory that no process mapped for this many rounds is forgotten.
inline constexpr uint64_t kRoundsUnmapped = 3;
// Memory without a ring set's magic number may become one. The finder gives it up after this many
// rounds.
inline constexpr uint32_t kTriesOfUnfinished = 5;
// A ring set that could not be announced: after so many rounds without it it is not found any more.
inline constexpr uint32_t kLooksForMissing = 2;
// Waits for the owner of a lock in a ring set that no consumer reads: each takes up to 0.2 s of the
// agent's loop. So many a second, and at once.
inline constexpr double kLockWaits = 0.5;
inline constexpr double kLockWaitsAtOnce = 5;
// Names of ring sets that are remembered for a channel: a program can announce names without end.
inline constexpr size_t kMaxNames = size_t{1} << 17;
// Size of the FIFO in which 32,768 names can wait, best effort: the kernel limits what the pipes of
// an unprivileged user hold. One read takes kNamesBytesAtOnce, which is what a new pipe holds.
inline constexpr int kNamesBytes = 1 << 20;
inline constexpr int kNamesBytesAtOnce = 1 << 16;
inline constexpr int kReadsOfAllNames = kNamesBytes / kNamesBytesAtOnce;
// Mappings of one process that are opened in one round, since a tenant can map any number.
inline constexpr size_t kMaxOpenedPerLook = 64;
// Size of the text of one /proc/PID/maps: enough for 65530 mappings, the kernel's usual limit.
inline constexpr size_t kMaxMapsBytes = size_t{16} << 20;
// All rings of a container use at most this part of its memory limit.
inline constexpr uint64_t kRingPartOfMemory = 20;
// When the process of a ring set has ended, the ring set's contents leave its container's memory
// after this many looks.
inline constexpr uint32_t kLooksUntilMoved = 2;
inline constexpr uint32_t kMaxHugePageTries = 20;
inline constexpr std::chrono::milliseconds kHugePageRetry{100};
// Adopted control areas. The kernel may charge the agent for what it writes to one, some 100 KiB.
// All of a node, those of a namespace (as many as kMaxAttached), and those of a process, which has
// one of its own unless it loads several copies of the library.
inline constexpr size_t kMaxAdoptedAreas = 1024;
inline constexpr size_t kMaxAdoptedOfOwner = 256;
inline constexpr size_t kMaxAdoptedOfProcess = 4;
// Loading the library into programs that run (cluster/attach_service.h): how often processes are
// looked for, and the longest pause after which one that refused is tried again; looks at a new
// process, which may still enter a container; tries after which a refusal counts, and looks after
// which a Trace does not wait for processes any more; processes of a namespace that have the
// library; how long the work at one process may keep that at others waiting.
inline constexpr std::chrono::milliseconds kAttachInterval{500};
inline constexpr std::chrono::seconds kLongestAttachPause{60};
inline constexpr int kLooksAtNewProcess = 4;
inline constexpr int kTriesUntilRefused = 2;
inline constexpr int kLooksUntilAttached = 6;
inline constexpr size_t kMaxAttached = 256;
inline constexpr std::chrono::milliseconds kAttachPatience{10000};
// In a cluster: the loop checks deadlines every kTick. If it did not for this long, it hangs.
inline constexpr std::chrono::seconds kStuckTime{30};
// In a cluster: how often an agent notes that it is there, and after how long without such a note
// programs may have begun and ended uncounted. A session remembers so many of these times.
inline constexpr std::chrono::seconds kPresenceInterval{1};
inline constexpr std::chrono::seconds kAbsence{3};
inline constexpr size_t kMaxTimesAway = 3;
// The search for the kubelet's folder in the hierarchy of cgroups: at most this deep below its
// root, through at most this many folders.
inline constexpr int kMaxKubepodsDepth = 5;
inline constexpr size_t kMaxCgroupsLookedAt = 16384;
// How often the agent looks for the cgroups of pods that are starting.
inline constexpr std::chrono::milliseconds kCgroupInterval{200};
// How often a kernel channel that got no ring is tried again.
inline constexpr std::chrono::seconds kRingRetry{5};
// How often the agent looks for probed files in containers that lack them, and how many such files
// a session may have open.
inline constexpr std::chrono::seconds kProbeInterval{5};
inline constexpr size_t kMaxProbedFiles = 256;
// How long the agent waits before it looks again at which events programs offer, as long as none
// offers one that a Trace names: kEventInterval, or the Trace's duration / kLooksOfDuration if that
// is shorter, and at least kEventRest times as long as the look took. After kLooksUntilNotOffered
// looks that is reported. One look reads at most so many files of so many processes, and of each
// file at most so many bytes of sections' names.
inline constexpr std::chrono::seconds kEventInterval{5};
inline constexpr int kLooksOfDuration = 4;
inline constexpr int kEventRest = 20;
inline constexpr int kLooksUntilNotOffered = 2;
inline constexpr size_t kMaxSearchedProcesses = 4096;
inline constexpr size_t kMaxSearchedFiles = 4096;
inline constexpr uint64_t kMaxSectionNames = uint64_t{1} << 20;
// A container runtime's file about a container or an image, how many containers are remembered of
// which such files were read, and how much of an image's LD_PRELOAD a message quotes.
inline constexpr size_t kMaxRuntimeFile = size_t{1} << 20;
inline constexpr size_t kMaxKnownImages = 4096;
inline constexpr size_t kMaxToldPreload = 200;
// How often the agent tries again to load the kernel module while a Trace needs it: an
// administrator may have installed it meanwhile.
inline constexpr std::chrono::seconds kDriverRetry{60};
// How often counters for /metrics are summed up; Prometheus asks every few seconds.
inline constexpr std::chrono::milliseconds kCountInterval{200};
// A status in which only counts changed is written at most this often.
inline constexpr std::chrono::seconds kCountsSaid{5};
// For so long after the kernel killed a consumer for its memory, its Traces report it.
inline constexpr std::chrono::minutes kConsumerTroubleSaid{10};
// Ended Traces that still have counters. This bounds the size of a scrape.
inline constexpr size_t kMaxEndedTraces = 1024;
// Lines of the log about what one pod's processes or one consumer do: so many at once, then one in
// ten seconds. kMaxNoted pods and consumers are remembered for that.
inline constexpr double kNotesAtOnce = 10;
inline constexpr double kNotesPerSecond = 0.1;
inline constexpr size_t kMaxNoted = 1024;
// Notices of a session, which are lines for people. The last ones are kept.
inline constexpr size_t kMaxNotices = 64;
// Reports of what kernel events lack: at most kMaxAbsences for a rule, each with at most
// kMaxNamedEvents names of events.
inline constexpr size_t kMaxAbsences = 8;
inline constexpr size_t kMaxNamedEvents = 3;
// Size of the Traces of a CreateSession; lib/api has the limit of one document.
inline constexpr size_t kMaxTracesBytes = size_t{4} << 20;
// How long records wait for a relay that does not take them, after their Trace was deleted or the
// cli has ended.
inline constexpr std::chrono::seconds kLastRelayWait{60};
// How long `weft record` waits, once its programs have ended, for a relay that is there and refuses
// what is left: it may make room by removing what has become old.
inline constexpr std::chrono::seconds kLastRefusedWait{10};
// How long the rings of weft.ko are read when the node's agent ends. By default, Kubernetes kills
// its pod 30 s after it requested the end, and the other processes end after the agent.
inline constexpr std::chrono::seconds kLastDrainWait{5};
// Connections to relays that are being made at one moment. Every Trace and consumer has two.
inline constexpr size_t kMaxDials = 64;
inline constexpr std::chrono::seconds kDialTime{5};
// Requests for tickets that are under way, one for each namespace, and tickets that are kept.
inline constexpr size_t kMaxTicketRequests = 16;
inline constexpr size_t kMaxTickets = 1024;
inline constexpr size_t kMaxTicketBytes = 4096;
inline constexpr uint64_t kMaxTicketSeconds = 24 * 3600;
// A ticket that a relay refused is replaced at most so often.
inline constexpr std::chrono::seconds kTicketPause{2};
// A connection to a relay ends when bytes stay unacknowledged for kRelaySilence. After
// kRelayKeepIdle without traffic it is probed.
inline constexpr std::chrono::seconds kRelaySilence{30};
inline constexpr int kRelayKeepIdle = 10;  // seconds
// Bytes of reasons to send a slow consumer a message. The message itself is made when there is room
// for it.
inline constexpr size_t kMaxConsumerBacklog = 1 << 20;

}  // namespace weft::agent

#endif  // WEFT_NODE_AGENT_AGENT_BASE_LIMITS_H_
