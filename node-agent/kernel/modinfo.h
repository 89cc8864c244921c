// SPDX-License-Identifier: Apache-2.0
// Reads the section .modinfo of a kernel module's file: "key=value" texts, each with a NUL. The
// file is foreign: everything is bounded and checked. Source of the format: elf(5), modinfo(8).
// Thread-safety: pure functions.
#ifndef WEFT_NODE_AGENT_KERNEL_MODINFO_H_
#define WEFT_NODE_AGENT_KERNEL_MODINFO_H_

#include <cstdint>
#include <string>

#include "lib/base/bytes.h"
#include "lib/base/result.h"

namespace weft::kernel {

struct ModuleInfo {
  std::string name, version;
  std::string srcversion;  // a hash of the sources
  std::string vermagic;    // "6.1.0-56-amd64 SMP preempt mod_unload modversions "
  uint32_t abi = 0;        // weft.ko's WEFT_KERNEL_ABI_MAJOR; 0: it does not say
  bool is_signed = false;  // by whomever

  // Returns the release of the kernel that the module is built for, as in uname -r.
  [[nodiscard]] std::string release() const { return vermagic.substr(0, vermagic.find(' ')); }
};

// kCorrupt: no ELF file, or it contradicts itself; kUnsupported: not of 64 bits, little-endian;
// kNotFound: no module, since there is no .modinfo.
Result<ModuleInfo> ParseModuleInfo(Bytes file);
// kNotFound: there is no such file; kLimit: it is too large.
Result<ModuleInfo> ReadModuleInfo(const std::string& path);

}  // namespace weft::kernel

#endif  // WEFT_NODE_AGENT_KERNEL_MODINFO_H_
