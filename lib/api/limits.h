// SPDX-License-Identifier: Apache-2.0
// All limits of a Trace, with their reasons. The schema table (trace_schema.cc), and so the CRD,
// take their numbers from here. To change one is to change the API: loosening is compatible,
// tightening is not.
#ifndef WEFT_LIB_API_LIMITS_H_
#define WEFT_LIB_API_LIMITS_H_

#include <chrono>
#include <cstddef>
#include <cstdint>

namespace weft::api::limits {

// --- documents, before anything is known about their content ---------------------------------

// etcd refuses objects above 1.5 MiB; no Trace that a cluster could hold is larger.
inline constexpr std::size_t kDocumentBytes = std::size_t{1} << 20;
// Documents in one file. Each document costs its nodes; a person's file has a handful.
inline constexpr std::size_t kDocuments = 64;
// spec.user.events[0].logLevel.range.from is 7 deep; managedFields of an object that was fetched
// from a cluster reach about twice that. This bounds the recursion over a document.
inline constexpr std::size_t kDepth = 32;
// Scalars, lists and maps of one file. Aliases count as often as they are used ("billion laughs").
// The largest Trace that the limits below admit has a few thousand.
inline constexpr std::size_t kNodes = 100'000;
// More messages than this do not help a reader; the last one says that there are more.
inline constexpr std::size_t kDiagnostics = 50;

// --- metadata, as Kubernetes has them --------------------------------------------------------

// A subdomain may have 253 characters, but the name is also a label value, a folder at the relay
// and part of other objects' names.
inline constexpr std::size_t kTraceName = 63;
inline constexpr std::size_t kDnsLabel = 63;
inline constexpr std::size_t kRequest = 64;
inline constexpr std::size_t kDnsSubdomain = 253;
inline constexpr std::size_t kLabelValue = 63;
inline constexpr std::size_t kLabelKey = 253 + 1 + 63;
// Sum of keys and values of all annotations, apimachinery's TotalAnnotationSizeLimitB.
inline constexpr std::size_t kAnnotationBytes = 256 * 1024;

// --- which pods ------------------------------------------------------------------------------

// Kubernetes sets none; a selector is evaluated for every pod of a namespace.
inline constexpr std::size_t kMatchLabels = 64;
inline constexpr std::size_t kMatchExpressions = 32;
inline constexpr std::size_t kMatchValues = 64;
inline constexpr std::size_t kContainers = 64;

// --- which events ----------------------------------------------------------------------------

// LTTng-UST's LTTNG_UST_ABI_SYM_NAME_LEN is 256 with its NUL: no event's name is longer.
inline constexpr std::size_t kEventName = 255;
// A quarter of a container's rules (WEFT_MAX_RULES), so that a container has room for four full
// Traces.
inline constexpr std::size_t kEventRules = 256;
inline constexpr std::size_t kExclusions = 64;
// Names of C++ functions with their templates are long; 1 KiB holds all but generated ones.
inline constexpr std::size_t kFunctionName = 1024;
inline constexpr std::size_t kFileName = 255;  // NAME_MAX
inline constexpr std::size_t kFunctionArgs = 16;
inline constexpr std::size_t kPathSteps = 4;      // WEFT_HOOK_MAX_STEPS
inline constexpr std::size_t kMemberPath = 255;   // a person writes it
inline constexpr std::size_t kPath = 4095;        // PATH_MAX
inline constexpr std::size_t kUserProbeArgs = 6;  // registers of integer arguments on x86-64
inline constexpr std::size_t kUsdtName = 255;     // with the provider, as any event's
inline constexpr std::size_t kIdentifier = 63;
// Longest kernel symbol with room: KSYM_NAME_LEN is 512.
inline constexpr std::size_t kSymbolName = 511;
inline constexpr std::int64_t kSyscallBuffer = 4096;   // WEFT_FETCH_MAX_STRING
inline constexpr std::int64_t kProbeOffset = 1 << 20;  // no function is longer than that
// Bytes of an expression that a person writes: the limit of lib/event's parser (kMaxFilterText).
inline constexpr std::size_t kFilter = 4096;
inline constexpr std::size_t kContexts = 32;  // WEFT_MAX_CONTEXTS
inline constexpr std::size_t kContextName = 255;
inline constexpr std::size_t kTrackedIds = 256;       // WEFT_MAX_TRACKED_IDS
inline constexpr std::int64_t kMaxPid = 1 << 22;      // PID_MAX_LIMIT, 64-bit kernels
inline constexpr std::int64_t kMaxUid = 0xffff'fffe;  // (uid_t)-1 means "no user"

// --- how it is recorded ----------------------------------------------------------------------

// lib/abi/ring.h: WEFT_RING_MIN_SUBBUF_SHIFT, WEFT_RING_MAX_SUBBUFS_SHIFT. All are powers of two.
inline constexpr std::uint64_t kMinSubBufferBytes = 4096;
inline constexpr std::uint64_t kMaxSubBufferBytes = 64u << 20;
inline constexpr std::uint32_t kMinSubBuffers = 2;
inline constexpr std::uint32_t kMaxSubBuffers = 256;
// Size times count: offsets in a slot are 31 bits.
inline constexpr std::uint64_t kMaxSlotBytes = std::uint64_t{1} << 30;

inline constexpr std::uint64_t kDefaultSubBufferBytes = 512u << 10;
inline constexpr std::uint32_t kDefaultSubBuffers = 4;

// A duration below a consumer's slowest poll makes no sense; one of more than a year means "no
// duration".
inline constexpr std::chrono::nanoseconds kMinDuration = std::chrono::milliseconds(10);
inline constexpr std::chrono::nanoseconds kMaxDuration = std::chrono::hours(24 * 366);

// A relay removes events in chunks of at least 256 KiB, each stream's newest one last. Sizes stay
// far within the 63 bits of CEL's numbers.
inline constexpr std::uint64_t kMinStorageBytes = std::uint64_t{16} << 20;
inline constexpr std::uint64_t kMaxStorageBytes = std::uint64_t{1} << 50;
inline constexpr std::chrono::nanoseconds kMinStorageAge = std::chrono::minutes(1);

// --- status, written by us -------------------------------------------------------------------

inline constexpr std::size_t kConditions = 32;
inline constexpr std::size_t kReasons = 64;  // of skipped pods, of lost events
// Uids of removed sessions that a Trace's status keeps. If more are removed at the same time, the
// others wait.
inline constexpr std::size_t kRemovedSessions = 64;
inline constexpr std::size_t kSkippedPodNames = 10;  // examples per reason: a status is no list
inline constexpr std::size_t kSegments = 256;
inline constexpr std::size_t kUuid = 36;  // RFC 4122, as text
inline constexpr std::size_t kTraceFolder = kDnsLabel + 1 + kTraceName + 1 + kUuid;
inline constexpr std::size_t kAddress = 253 + 1 + 5;  // a domain name, a colon, a port
inline constexpr std::size_t kReason = 128;           // as metav1.Condition's reason, shortened
inline constexpr std::size_t kMessage = 1024;
// What is wrong with one rule of kEventRules, which are all in a session's status.
inline constexpr std::size_t kRuleProblem = 512;

}  // namespace weft::api::limits

#endif  // WEFT_LIB_API_LIMITS_H_
