// SPDX-License-Identifier: Apache-2.0
// Any bytes are a file with functions, or none; any line is one of /proc/PID/maps, or none.
#include <sys/mman.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>

#include "lib/base/unique_fd.h"
#include "node-agent/hooks/functions.h"
#include "node-agent/hooks/process_memory.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const weft::UniqueFd file(memfd_create("functions", MFD_CLOEXEC));
  static const std::vector<weft::hooks::HookRule> rules{{"t", {.name = "*f*", .exclude = {"*g"}}},
                                                        {"t", {.name = "a::b"}}};
  if (ftruncate(file.get(), 0) != 0 ||
      pwrite(file.get(), data, size, 0) != static_cast<ssize_t>(size))
    return 0;
  const auto read = weft::hooks::ReadFunctions(file.get(), rules, {0, 1});
  if (read)
    for (const weft::hooks::Function& function : read->functions)
      if (function.rule > 1) __builtin_trap();
  (void)weft::hooks::FindDynamicSymbol(file.get(), "f");
  const auto range = weft::hooks::ParseRange({reinterpret_cast<const char*>(data), size});
  if (range && (range->end <= range->begin || range->path.size() > size)) __builtin_trap();
  return 0;
}
