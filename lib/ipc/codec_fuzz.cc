// SPDX-License-Identifier: Apache-2.0
// Any text is refused or becomes a message that encodes to something which decodes again.
#include <cstddef>
#include <cstdint>
#include <cstdlib>

#include "lib/ipc/channel.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  weft::ipc::Wire wire;
  wire.text.assign(reinterpret_cast<const char*>(data), size);
  auto message = weft::ipc::Decode(std::move(wire));
  if (!message) return 0;
  auto again = weft::ipc::Encode(std::move(*message));
  if (again && !weft::ipc::Decode(std::move(*again))) std::abort();
  return 0;
}
