// SPDX-License-Identifier: Apache-2.0
// The tracepoints that were compiled into a file (lib/abi/tracepoint.h), as its constructor would
// describe them to libweft.so: found by the file's note and sections, without running anything.
// Files are foreign. Thread-safety: pure functions.
#ifndef WEFT_NODE_AGENT_ATTACH_PROVIDER_OBJECT_H_
#define WEFT_NODE_AGENT_ATTACH_PROVIDER_OBJECT_H_

#include <cstdint>
#include <optional>

#include "lib/abi/tracepoint.h"
#include "lib/base/result.h"

namespace weft::attach {

// Addresses are from the file's first segment, at a page.
struct ProviderObject {
  uint64_t object = 0;  // of its weft_object
  uint64_t tracepoints = 0;
  uint64_t events = 0;
  uint64_t arguments = 0;
  uint32_t tracepoint_count = 0;
  uint32_t event_count = 0;
  uint64_t argument_bytes = 0;
};

// std::nullopt: it has no tracepoints. kCorrupt: it contradicts itself.
Result<std::optional<ProviderObject>> FindProviderObject(int file);

// Returns the weft_object of a file that is loaded at `base`. `list`: where its
// weft_arguments_list will be.
weft_object MakeObject(const ProviderObject& provider, uint64_t base, uint64_t list);

}  // namespace weft::attach

#endif  // WEFT_NODE_AGENT_ATTACH_PROVIDER_OBJECT_H_
