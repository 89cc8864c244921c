// SPDX-License-Identifier: Apache-2.0
// Any bytes as a program: refused, or its probes become events that weft.ko takes.
#include <cstdlib>

#include "node-agent/kernel/user_probes.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace weft::kernel;
  const auto program = UserProgram::Parse({data, size});
  if (!program) return 0;
  for (const char* function : {"main", "main.main"}) {
    const UserPlace place{.event = "f", .function = function};
    const auto entry = ResolveUprobe(*program, place);
    const auto exit = ResolveUretprobe(*program, place);
    if (entry && entry->offset > INT64_MAX) std::abort();
    if (exit && program->is_go()) std::abort();
  }
  const auto sites = ResolveUsdt(*program, "u", "p:n");
  if (sites && sites->empty()) std::abort();
  return 0;
}
