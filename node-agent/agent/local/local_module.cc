// SPDX-License-Identifier: Apache-2.0
// See local_module.h.
#include "node-agent/agent/local/local_module.h"

#include <unistd.h>

#include <filesystem>
#include <utility>

#include "node-agent/kernel/driver.h"
#include "node-agent/kernel/module.h"

namespace weft::agent {
namespace {

// The folder beside bin/ in an installation.
constexpr const char* kOwnFolder = "share/weft/kmod/modules";
// A repository's: programs are in build/PRESET/bin or in an installation below build/, modules in
// build/kmod/KERNEL.
constexpr const char* kBuildFolder = "build";
constexpr const char* kModulesInBuildFolder = "kmod";

// Returns the folder of modules in each folder called "build" above the program, the nearest first.
std::vector<std::string> BuildFoldersOf(const std::filesystem::path& program) {
  std::vector<std::string> folders;
  for (auto at = program.parent_path(); at != at.parent_path(); at = at.parent_path())
    if (at.filename() == kBuildFolder) folders.push_back(at / kModulesInBuildFolder);
  return folders;
}

}  // namespace

Result<kernel::Support> ProbeOrLoadModule(std::vector<std::string> folders) {
  auto support = kernel::ThisBackend().Probe();
  if (support || geteuid() != 0) return support;
  std::error_code error;
  const auto program = std::filesystem::read_symlink("/proc/self/exe", error);
  std::vector<std::string> builds;
  if (!error) {
    folders.push_back(program.parent_path().parent_path() / kOwnFolder);
    builds = BuildFoldersOf(program);
  }
  const kernel::DriverState state = kernel::PrepareDriver(
      kernel::ThisHost(), {.folders = std::move(folders), .builds = std::move(builds)});
  if (!state.is_ready) return Fail(ErrorCode::kUnsupported, state.reason + ": " + state.message);
  return kernel::ThisBackend().Probe();
}

}  // namespace weft::agent
