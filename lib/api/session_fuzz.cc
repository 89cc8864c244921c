// SPDX-License-Identifier: Apache-2.0
// Any bytes as a TraceSession: no crash, no exception, a reason where there is none; and one that
// was read is written and read back as the same.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "lib/api/session.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace weft::api;
  const auto session = ParseSession({reinterpret_cast<const char*>(data), size});
  if (!session) {
    if (session.error().empty()) std::abort();
    return 0;
  }
  const auto again = ParseSession(ToJson(*session));
  if (!again || !(*again == *session)) std::abort();
  return 0;
}
