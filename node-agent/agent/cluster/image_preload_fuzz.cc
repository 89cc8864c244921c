// SPDX-License-Identifier: Apache-2.0
// Any text: digests are of their form, whatever an image says.
#include <cstdlib>
#include <string_view>

#include "node-agent/agent/cluster/image_preload.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto text = weft::agent::ReadRuntimeText({reinterpret_cast<const char*>(data), size});
  for (const std::string& digest : {text.image, text.next}) {
    if (digest.empty()) continue;
    if (digest.size() != 64 || digest.find_first_not_of("0123456789abcdef") != std::string::npos)
      std::abort();
  }
  return 0;
}
