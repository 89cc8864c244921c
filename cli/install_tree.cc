// SPDX-License-Identifier: Apache-2.0
// See install_tree.h.
#include "cli/install_tree.h"

#include <limits.h>
#include <unistd.h>

#include <cstdlib>

namespace weft::cli {

Result<InstallTree> FindInstallTree() {
  char path[PATH_MAX];
  const ssize_t n = readlink("/proc/self/exe", path, sizeof(path) - 1);
  if (n < 0) return FailErrno("/proc/self/exe");
  InstallTree tree;
  tree.bin.assign(path, static_cast<size_t>(n));
  tree.bin.erase(tree.bin.rfind('/'));
  tree.library = tree.bin.substr(0, tree.bin.rfind('/')) + "/lib/libweft.so";
  for (const std::string& file : {tree.bin + "/weft-keeper", tree.bin + "/weft-agent",
                                  tree.bin + "/weft-consumer", tree.library})
    if (access(file.c_str(), R_OK) != 0)
      return Fail(ErrorCode::kNotFound,
                  file + " is missing: weft's files must stay together as they were installed");
  return tree;
}

// Programs that root starts may change their user and must still find the folder, so root's is not
// the runtime folder that only root may enter.
std::string RuntimeFolder() {
  const char* runtime = std::getenv("XDG_RUNTIME_DIR");
  if (geteuid() != 0 && runtime != nullptr && runtime[0] == '/' &&
      std::string(runtime).size() < 64 && access(runtime, W_OK | X_OK) == 0)
    return runtime;
  return "/tmp";
}

std::string SessionPrefix() { return "weft-" + std::to_string(geteuid()) + "-"; }

}  // namespace weft::cli
