// SPDX-License-Identifier: Apache-2.0
// Limits of what the agent reads from a kernel, with their reasons.
#ifndef WEFT_NODE_AGENT_KERNEL_LIMITS_H_
#define WEFT_NODE_AGENT_KERNEL_LIMITS_H_

#include <cstddef>
#include <cstdint>

namespace weft::kernel {

// Bytes of one BTF. Distributions' kernels have 4 to 6 MB; one with everything built in has 20.
inline constexpr size_t kMaxBtfBytes = 64u << 20;

// Steps along references from type to type (typedef of const of ...). Kernels have fewer than ten;
// a longer chain is a circle.
inline constexpr int kMaxTypeDepth = 32;

// Members that are looked at to find one by name. The kernel's largest structures have about 300.
// In hostile bytes, structures without a name may contain themselves.
inline constexpr size_t kMaxMembersSearched = 4096;

// Bytes of a string in a field without a limit of its own; bytes of a system call's string (paths
// rarely come near the kernel's 4096); bytes of one file of tracefs; and bytes of a list of symbols
// (/proc/kallsyms has 10 MB on a large kernel).
inline constexpr uint32_t kDefaultStringBytes = 256;
inline constexpr uint32_t kSyscallTextBytes = 1024;
inline constexpr size_t kMaxFormatBytes = 256u << 10;
inline constexpr size_t kMaxSymbolBytes = 64u << 20;

// Parts of a program that are loaded: linkers make four to eight. Places of one USDT probe: a
// compiler that inlines makes tens, at times hundreds; each is a breakpoint and an event, whose
// descriptions a ring has 1 MiB for (200 bytes each). Arguments of one: sys/sdt.h has macros for
// twelve.
inline constexpr size_t kMaxSegments = 256;
inline constexpr size_t kMaxUsdtSites = 4096;
inline constexpr size_t kMaxUsdtArguments = 12;

// Labels of one enumeration in a description: some of the kernel's enumerations have hundreds,
// which every ring set would hold once per event.
inline constexpr size_t kMaxLabels = 160;

// Limits of a module's file (weft.ko has 0.5 MB, with debugging information 4 MB), and of one text
// in it.
inline constexpr size_t kMaxModuleBytes = 64u << 20;
inline constexpr size_t kMaxModinfoText = 256;
// Limit of what a build of weft.ko on a node prints; its end is reported where it fails.
inline constexpr size_t kMaxBuildOutput = 64u << 10;

}  // namespace weft::kernel

#endif  // WEFT_NODE_AGENT_KERNEL_LIMITS_H_
