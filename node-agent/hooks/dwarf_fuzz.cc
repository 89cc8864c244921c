// SPDX-License-Identifier: Apache-2.0
// Any bytes are a file with debug information, or none. What is read of it can be written and read
// again as text.
#include <sys/mman.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <numeric>

#include "lib/base/unique_fd.h"
#include "node-agent/hooks/dwarf_types.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const weft::UniqueFd file(memfd_create("types", MFD_CLOEXEC));
  static const std::vector<uint64_t> addresses = [] {
    std::vector<uint64_t> all(8192);
    std::iota(all.begin(), all.end(), 0);
    return all;
  }();
  if (ftruncate(file.get(), 0) != 0 ||
      pwrite(file.get(), data, size, 0) != static_cast<ssize_t>(size))
    return 0;
  const auto types = weft::hooks::ReadDwarfTypes(file.get(), addresses);
  if (!types) return 0;
  const auto again = weft::hooks::ParseTypes(weft::hooks::ToText(*types));
  if (!again || *again != *types) __builtin_trap();
  return 0;
}
