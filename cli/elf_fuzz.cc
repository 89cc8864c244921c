// SPDX-License-Identifier: Apache-2.0
// Any bytes are refused or parsed; what is parsed stays inside them.
#include <cstddef>
#include <cstdint>

#include "cli/elf_file.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  (void)weft::cli::ParseElf({data, size});
  return 0;
}
