// SPDX-License-Identifier: Apache-2.0
// For tests: the running kernel, and Debian's kernels in the cache of the virtual machines, if
// they are there. If WEFT_KERNELS names kernels ("6.1,6.12"), it is exactly these, and they must
// exist.
#ifndef WEFT_NODE_AGENT_KERNEL_TEST_KERNELS_H_
#define WEFT_NODE_AGENT_KERNEL_TEST_KERNELS_H_

#include <cstdint>
#include <filesystem>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "node-agent/kernel/btf.h"

namespace weft::kernel::testing {

struct TestKernel {
  std::string label;   // "running", "v6_1": a name for a test
  std::string folder;  // of the cache: btf, lib/modules, usr/src; empty: the running kernel
};

// Returns the folder in which kmod/qemu keeps kernels, by its settings.py.
std::filesystem::path KernelCache();

// The running kernel comes first, unless kernels are requested by name.
std::vector<TestKernel> TestKernels();

// Returns the BTF of the kernel, then those of ext4 and xfs; for the running kernel, only if they
// are modules. Throws if something is missing.
std::vector<Btf> LoadKernel(const TestKernel& kernel);

// SubsystemNames returns the names of the kernel's trace events of a subsystem, and some other
// names. They come from the folders of tracefs, or from a header of its source
// (include/trace/events). They are unknown for the running kernel if tracefs is not mounted.
[[nodiscard]] bool KnowsSubsystems(const TestKernel& kernel);
std::set<std::string> SubsystemNames(const TestKernel& kernel, std::string_view subsystem);

// Returns the system calls that the kernel's headers give programs of 64 or 32 bits, with their
// numbers; unknown for the running kernel.
std::map<std::string, uint32_t> SyscallTable(const TestKernel& kernel, bool compat);

}  // namespace weft::kernel::testing

#endif  // WEFT_NODE_AGENT_KERNEL_TEST_KERNELS_H_
