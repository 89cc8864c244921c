// SPDX-License-Identifier: Apache-2.0
// Any text as a format of tracefs.
#include "node-agent/kernel/syscall_format.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  (void)weft::kernel::ParseSyscallFormat({reinterpret_cast<const char*>(data), size});
  return 0;
}
