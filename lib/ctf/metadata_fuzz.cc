// SPDX-License-Identifier: Apache-2.0
// Any bytes as metadata, TSDL, JSON or packetized.
#include <cstddef>
#include <cstdint>

#include "lib/ctf/trace_class.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  (void)weft::ctf::ParseMetadata({reinterpret_cast<const char*>(data), size});
  return 0;
}
