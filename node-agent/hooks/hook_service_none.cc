// SPDX-License-Identifier: Apache-2.0
// The service on machines whose code cannot be hooked. Traces with functions are refused there
// before it is started.
#include "node-agent/hooks/hook_service.h"

namespace weft::hooks {

HookService::~HookService() = default;

Status HookService::Start(const std::string& /*folder*/, const std::string& /*control*/) {
  return Fail(ErrorCode::kUnsupported, "functions are hooked on x86-64 only");
}

void HookService::SetRules(std::vector<HookRule> /*rules*/) {}
std::vector<std::string> HookService::TakeNotes() { return {}; }
std::vector<std::string> HookService::Summary() const { return {}; }

}  // namespace weft::hooks
