// SPDX-License-Identifier: Apache-2.0
// The service on machines whose code cannot be hooked. Traces with functions are refused there
// before it is started.
#include "node-agent/hooks/hook_service.h"

#include <algorithm>

namespace weft::hooks {

HookService::~HookService() = default;

Status HookService::SetContainers(std::vector<HookedContainer> containers) {
  if (std::ranges::all_of(containers, [](const HookedContainer& c) { return c.rules.empty(); }))
    return {};
  return Fail(ErrorCode::kUnsupported, "functions are hooked on x86-64 only");
}

bool HookService::MayBeAt(const std::string& /*pod_uid*/) const { return false; }
void HookService::LookAgain() {}
std::vector<std::string> HookService::TakeNotes() { return {}; }
std::vector<std::string> HookService::Summary() const { return {}; }
uint64_t HookService::Hooked() const { return 0; }
uint64_t HookService::Searched() const { return 0; }
std::vector<std::string> HookService::Refusals(const std::string& /*trace*/) const { return {}; }

}  // namespace weft::hooks
