// SPDX-License-Identifier: Apache-2.0
// See local_module.h.
#include "node-agent/agent/local_module.h"

#include <unistd.h>

#include <filesystem>
#include <utility>

#include "node-agent/kernel/driver.h"
#include "node-agent/kernel/module.h"

namespace weft::agent {
namespace {

// Beside bin/, as an installation has it.
constexpr const char* kOwnFolder = "share/weft/kmod/modules";

}  // namespace

Result<UniqueFd> OpenOrLoadModule(std::vector<std::string> folders) {
  auto module = kernel::OpenModule();
  if (module || geteuid() != 0) return module;
  std::error_code error;
  const auto program = std::filesystem::read_symlink("/proc/self/exe", error);
  if (!error) folders.push_back(program.parent_path().parent_path() / kOwnFolder);
  const kernel::DriverState state =
      kernel::PrepareDriver(kernel::ThisHost(), {.folders = std::move(folders)});
  if (!state.is_ready) return Fail(ErrorCode::kUnsupported, state.reason + ": " + state.message);
  return kernel::OpenModule();
}

}  // namespace weft::agent
