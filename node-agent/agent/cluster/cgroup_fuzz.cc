// SPDX-License-Identifier: Apache-2.0
// Any text: no pod, or a uid and an id that are of their forms.
#include <cstdlib>
#include <string_view>

#include "node-agent/agent/cluster/cgroup.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto place = weft::agent::ParseCgroup({reinterpret_cast<const char*>(data), size});
  if (!place) return 0;
  if (place->pod_uid.size() != 32 && place->pod_uid.size() != 36) std::abort();
  if (!place->container_id.empty() && place->container_id.size() != 64) std::abort();
  return 0;
}
