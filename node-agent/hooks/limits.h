// SPDX-License-Identifier: Apache-2.0
// Limits of hooks on functions. Files and memory of traced processes are foreign.
#ifndef WEFT_NODE_AGENT_HOOKS_LIMITS_H_
#define WEFT_NODE_AGENT_HOOKS_LIMITS_H_

#include <chrono>
#include <cstddef>
#include <cstdint>

namespace weft::hooks {

// A longer function is refused: all of its code is searched for branches into its first bytes.
inline constexpr uint64_t kMaxFunctionBytes = uint64_t{1} << 20;
// Entries of one jump table that are looked at. gcc's largest tables have some thousands.
inline constexpr size_t kMaxTableEntries = 65536;
// Code of one file that is searched for branches into other functions, and bytes in it that look
// like one and are decoded: less than a second.
inline constexpr uint64_t kMaxCodeBytes = uint64_t{512} << 20;
inline constexpr size_t kMaxBranchChecks = 65536;
// Symbols of one file, and functions of it that one look can hook. The areas have room for fewer.
inline constexpr size_t kMaxSymbols = size_t{4} << 20;
inline constexpr size_t kMaxMatches = 16384;
// What is remembered of the files of containers with the same rules: bytes, and files; and bytes of
// all caches of an agent together (cache_share.h). The symbols of a file with 500,000 functions
// take some 4 MB.
inline constexpr size_t kMaxCachedBytes = size_t{64} << 20;
inline constexpr size_t kMaxCachedFiles = 4096;
inline constexpr size_t kMaxAllCachedBytes = size_t{128} << 20;
// Functions, and objects, of one process that are refused one by one; functions that are remembered
// as hooked by one rule. The largest programs have some ten thousands.
inline constexpr size_t kMaxRefused = 65536;
inline constexpr size_t kMaxHookedNames = 65536;
// Symbols that a program has packed: bytes unpacked, and bytes for unpacking. Those of a program of
// 100 MB take some MB.
inline constexpr const char* kPackedSymbols = ".gnu_debugdata";
inline constexpr size_t kMaxUnpackedBytes = size_t{64} << 20;
inline constexpr size_t kMaxSymbolBytes = 4096;  // of a name; longer ones match nothing
// Text of one /proc/PID/maps: 65,530 mappings, the kernel's usual limit.
inline constexpr size_t kMaxMapsBytes = size_t{16} << 20;
inline constexpr uint64_t kMaxGapBytes = 2 << 20;  // between two segments of one object
inline constexpr size_t kMaxHooksOfTable = 65536;  // a table that says more is taken for damaged
// How long a thread may take to stop, and if it only waits for a processor; how often a stop is
// tried again where a thread is just inside the bytes that are replaced.
inline constexpr std::chrono::milliseconds kStopPatience{200};
inline constexpr std::chrono::seconds kBusyPatience{5};
inline constexpr std::chrono::milliseconds kStopPause{2};
inline constexpr int kStopTries = 50;
// Bytes of a thread's stack that are searched for the place that a signal interrupted.
inline constexpr size_t kStackBytes = size_t{64} << 10;
// Bytes of the stack that a function of the vDSO takes, with its return address, at most.
inline constexpr size_t kCalleeBytes = 512;
// Bytes in use below a stack pointer (System V ABI, 3.2.2), and stacks of one thread that are
// searched: its own, and those that signal handlers interrupted.
inline constexpr uint64_t kRedZoneBytes = 128;
inline constexpr size_t kMaxStacks = 4;
// Bytes of a call that libweft.so says; more is taken for damaged.
inline constexpr uint64_t kMaxCallBytes = 4096;
// How often processes are searched for objects that were loaded later.
inline constexpr std::chrono::milliseconds kLookInterval{500};
// Where hooks could not be taken off, or functions not be given back, it is tried again after
// kLookInterval, then after pauses that double, up to this one.
inline constexpr std::chrono::minutes kLongestAgainPause{10};
// How long the work at one process may keep that at others waiting. Its files and memory may lie on
// a file system of its own that never answers (FUSE). Not less than WEFT_HOOKS_PATIENCE_MS, for
// which a process waits at its start, and enough for one file whose types take kTypesPatience.
inline constexpr std::chrono::milliseconds kHookPatience{15000};
// How long replacing functions of the C library, and giving them back, waits for others that work
// at the process.
inline constexpr std::chrono::seconds kReplacePatience{1};
inline constexpr std::chrono::milliseconds kReplacePause{10};
// How long it is tried to give back all functions of the C library of one process. A word that an
// unwinder left on the stack of a thread that waits looks like one that it needs.
inline constexpr std::chrono::seconds kGiveBackPatience{2};
// Looks in which a new process may still become one that is recorded.
inline constexpr int kLooksAtNew = 4;
// Names that are shown for one that was not found; names of one file that it is compared with, and
// C++ names among these that are written out for that (some microseconds each).
inline constexpr size_t kNearNames = 3;
inline constexpr size_t kMaxCompared = 50000;
inline constexpr size_t kMaxNearDemangled = 20000;
// Bytes that the C++ name of a symbol could have. The bound is coarse: real names are far shorter.
inline constexpr uint64_t kMaxCppNameBound = uint64_t{64} << 20;
// Names of objects that are remembered, for the same.
inline constexpr size_t kMaxObjectNames = 1024;
// Types from debug information. weft-types takes at most this memory of its own and this time for
// one file; the file itself is mapped. A debug file of 200 MB takes about a tenth of that.
inline constexpr uint64_t kTypesMemoryBytes = uint64_t{256} << 20;
inline constexpr uint64_t kTypesAddressBytes = uint64_t{8} << 30;
inline constexpr std::chrono::seconds kTypesPatience{10};
static_assert(kHookPatience > kTypesPatience + std::chrono::seconds(3));
inline constexpr size_t kMaxTypesBytes = size_t{16} << 20;  // of its answer
inline constexpr int kMaxTypeDepth = 64;                    // typedefs of typedefs, namespaces
inline constexpr size_t kMaxFieldNameBytes = 128;
inline constexpr size_t kMaxNoteBytes = size_t{64} << 10;  // a build-id has 20 bytes
// Paths to members that weft-types is asked for in one file; others are not resolved.
inline constexpr size_t kMaxPaths = 256;
inline constexpr size_t kMaxTypedFiles = 64;  // that are remembered
// Debug files from debuginfod servers. A build-id has 20 bytes with the usual linkers; 8 is lld's
// shortest. What no server has, and what failed, is not asked for again in a period; a pod may ask
// for so many files in it. 120 s are enough for 1 GB at 100 Mbit/s.
inline constexpr size_t kMinBuildIdBytes = 8, kMaxBuildIdBytes = 32;
inline constexpr uint64_t kMaxDebugFileBytes = uint64_t{1} << 30;
inline constexpr std::chrono::seconds kServerPatience{120};
inline constexpr const char* kServerTimeout = "20";  // seconds until a server begins to answer
inline constexpr std::chrono::minutes kServerPeriod{10};
inline constexpr size_t kMaxAskedFiles = 64;
inline constexpr size_t kMaxAnswers = 1024;       // of all pods, that are remembered
inline constexpr size_t kMaxServerAnswer = 1024;  // bytes of weft-debuginfod's answer
inline constexpr const char* kDebuginfodDone = "done";
// In a cluster: the cache folder, and the user who owns it and downloads.
inline constexpr uint64_t kMaxCacheBytes = uint64_t{2} << 30;
inline constexpr size_t kMaxCacheFolders = 4096;
inline constexpr unsigned kDebuginfodUser = 65534;
// Processes of one pod that are taken one after the other when they call at their start.
inline constexpr size_t kCallsAtOnce = 16;
// Lines for people about functions that are not recorded.
inline constexpr size_t kMaxNotes = 48;

}  // namespace weft::hooks

#endif  // WEFT_NODE_AGENT_HOOKS_LIMITS_H_
