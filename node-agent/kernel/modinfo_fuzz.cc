// SPDX-License-Identifier: Apache-2.0
// Any bytes as the file of a kernel module.
#include "node-agent/kernel/modinfo.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  (void)weft::kernel::ParseModuleInfo({data, size});
  return 0;
}
