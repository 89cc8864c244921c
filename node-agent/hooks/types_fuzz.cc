// SPDX-License-Identifier: Apache-2.0
// Any text is weft-types' answer, or none.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "node-agent/hooks/function_types.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto types = weft::hooks::ParseTypes({reinterpret_cast<const char*>(data), size});
  if (!types) return 0;
  const auto again = weft::hooks::ParseTypes(weft::hooks::ToText(*types));
  if (!again || *again != *types) __builtin_trap();
  return 0;
}
