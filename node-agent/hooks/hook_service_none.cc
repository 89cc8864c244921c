// SPDX-License-Identifier: Apache-2.0
// The service on machines whose code cannot be hooked. Traces with functions are refused there
// before it is started.
#include "node-agent/hooks/hook_service.h"

namespace weft::hooks {

HookService::~HookService() = default;

Status HookService::SetContainers(std::vector<HookedContainer> /*containers*/) {
  return Fail(ErrorCode::kUnsupported, "functions are hooked on x86-64 only");
}

std::vector<std::string> HookService::TakeNotes() { return {}; }
std::vector<std::string> HookService::Summary() const { return {}; }
uint64_t HookService::Hooked() const { return 0; }
std::vector<std::string> HookService::Refusals(const std::string& /*trace*/) const { return {}; }

}  // namespace weft::hooks
