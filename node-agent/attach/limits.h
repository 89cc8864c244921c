// SPDX-License-Identifier: Apache-2.0
// Limits of loading libweft.so into running processes. Their memory and files are foreign.
#ifndef WEFT_NODE_AGENT_ATTACH_LIMITS_H_
#define WEFT_NODE_AGENT_ATTACH_LIMITS_H_

#include <chrono>
#include <cstddef>
#include <cstdint>

namespace weft::attach {

inline constexpr uint64_t kPageBytes = 4096;
constexpr uint64_t PageDown(uint64_t value) { return value & ~(kPageBytes - 1); }
constexpr uint64_t PageUp(uint64_t value) { return PageDown(value + kPageBytes - 1); }
inline constexpr size_t kMaxLibraryBytes = size_t{16} << 20;
inline constexpr uint64_t kMaxSpanBytes = uint64_t{64} << 20;  // of its segments in memory
inline constexpr size_t kMaxConstructors = 64;
inline constexpr size_t kMaxRelocations = 65536;
inline constexpr size_t kMaxAuxiliaryBytes = 4096;  // of /proc/PID/auxv; it has some 400
// Code of the process that is searched for a system call and for the return from a signal handler.
// The C library has both within its first 2 MiB.
inline constexpr uint64_t kMaxSearchedBytes = uint64_t{256} << 20;
// How long, and how often, the code of a program that begins is searched.
inline constexpr std::chrono::milliseconds kBeginPatience{500};
inline constexpr std::chrono::milliseconds kBeginPause{10};
// Registers of the floating point unit: 11 KiB with AMX.
inline constexpr size_t kMaxFpuBytes = 16384;
// Stack on which the library's constructors run. They use some 2 KiB.
inline constexpr uint64_t kStackBytes = 65536;
// Code that is read at a time.
inline constexpr uint64_t kSearchBytes = uint64_t{1} << 20;
// How long a thread may take to stop, and one system call that it makes for the agent.
inline constexpr std::chrono::milliseconds kStopPatience{500};
inline constexpr std::chrono::milliseconds kCallPatience{20'000};
// How long another agent that loads into the process is waited for.
inline constexpr std::chrono::milliseconds kLockPatience{5'000};
// How long one thread after the other is tried, and how long one is used. The agent waits.
inline constexpr std::chrono::milliseconds kTakePatience{5'000};
inline constexpr std::chrono::milliseconds kLoadPatience{30'000};
// Text of /proc/PID/status: a thread can have 65,536 groups.
inline constexpr size_t kMaxStatusBytes = size_t{1} << 20;
// Stops of a thread that runs a constructor: two for each system call.
inline constexpr int kMaxStops = 10'000;
// Seccomp filters of one process that are tried.
inline constexpr size_t kMaxFilters = 64;
// Objects of one process that are searched for tracepoints, and those that have some.
inline constexpr size_t kMaxSearchedObjects = 2048;
inline constexpr size_t kMaxObjects = 256;

}  // namespace weft::attach

#endif  // WEFT_NODE_AGENT_ATTACH_LIMITS_H_
