// SPDX-License-Identifier: Apache-2.0
// Any bytes are a file with tracepoints, or none. Addresses of what is found are a process's own.
#include <sys/mman.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>

#include "lib/base/unique_fd.h"
#include "node-agent/attach/provider_object.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  constexpr uint64_t kEnd = uint64_t{1} << 47;
  static const weft::UniqueFd file(memfd_create("provider", MFD_CLOEXEC));
  if (ftruncate(file.get(), 0) != 0 ||
      pwrite(file.get(), data, size, 0) != static_cast<ssize_t>(size))
    return 0;
  const auto found = weft::attach::FindProviderObject(file.get());
  if (!found || !*found) return 0;
  const weft::attach::ProviderObject& of = **found;
  for (const uint64_t address : {of.object, of.tracepoints, of.events, of.arguments})
    if (address >= kEnd || address % sizeof(uint64_t) != 0) __builtin_trap();
  for (const uint64_t bytes : {of.tracepoint_count * sizeof(uint64_t),
                               of.event_count * sizeof(uint64_t), of.argument_bytes})
    if (bytes > uint64_t{16} << 20) __builtin_trap();
  const weft_object object = weft::attach::MakeObject(of, kEnd, 0);
  if ((object.tracepoints == nullptr) != (of.tracepoint_count == 0)) __builtin_trap();
  return 0;
}
