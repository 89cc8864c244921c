// SPDX-License-Identifier: Apache-2.0
// Any text, with two descriptors, is refused or becomes a message that encodes to something which
// decodes again.
#include <fcntl.h>

#include <cstddef>
#include <cstdint>
#include <cstdlib>

#include "lib/ipc/connection.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  weft::ipc::Wire wire;
  wire.text.assign(reinterpret_cast<const char*>(data), size);
  // A message needs at most two: Arrived has two.
  for (int i = 0; i < 2; i++) wire.fds.emplace_back(::open("/dev/null", O_RDONLY | O_CLOEXEC));
  auto message = weft::ipc::Decode(std::move(wire));
  if (!message) return 0;
  auto again = weft::ipc::Encode(std::move(*message));
  if (again && !weft::ipc::Decode(std::move(*again))) std::abort();
  return 0;
}
