// SPDX-License-Identifier: Apache-2.0
// Limits of what the agent reads of a kernel, with their reasons.
#ifndef WEFT_NODE_AGENT_KERNEL_LIMITS_H_
#define WEFT_NODE_AGENT_KERNEL_LIMITS_H_

#include <cstddef>
#include <cstdint>

namespace weft::kernel {

// Bytes of one BTF. Distributions' kernels have 4 to 6 MB; one with everything built in has 20.
inline constexpr size_t kMaxBtfBytes = 64u << 20;

// Steps along references from type to type (typedef of const of ...). Kernels have fewer than ten; a
// longer chain is a circle.
inline constexpr int kMaxTypeDepth = 32;

// Members looked at to find one by name. The kernel's largest structures have about 300; structures
// without a name may contain themselves where the bytes are hostile.
inline constexpr size_t kMaxMembersSearched = 4096;

// Bytes of a string that a field without a limit of its own records, the same of a system call (paths:
// they rarely come near the kernel's 4096), of one file of tracefs, and of
// a list of symbols (/proc/kallsyms: 10 MB on a large kernel).
inline constexpr uint32_t kDefaultStringBytes = 256;
inline constexpr uint32_t kSyscallTextBytes = 1024;
inline constexpr size_t kMaxFormatBytes = 256u << 10;
inline constexpr size_t kMaxSymbolBytes = 64u << 20;

// Labels of one enumeration in a description: some of the kernel's enumerations have hundreds, which
// every ring set would hold once per event.
inline constexpr size_t kMaxLabels = 160;

}  // namespace weft::kernel

#endif  // WEFT_NODE_AGENT_KERNEL_LIMITS_H_
