// SPDX-License-Identifier: Apache-2.0
// Any line is a mapping or none.
#include <cstddef>
#include <cstdint>

#include "node-agent/agent/discovery/memory_maps.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto mapping = weft::agent::ParseMapping({reinterpret_cast<const char*>(data), size});
  if (mapping && mapping->name.size() > size) __builtin_trap();
  return 0;
}
