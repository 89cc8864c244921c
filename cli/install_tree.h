// SPDX-License-Identifier: Apache-2.0
// Finds weft's other files relative to this program's own path, so that the installed tree can be
// moved.
#ifndef WEFT_CLI_INSTALL_TREE_H_
#define WEFT_CLI_INSTALL_TREE_H_

#include <string>

#include "lib/base/result.h"

namespace weft::cli {

struct InstallTree {
  std::string bin;      // the folder of weft-keeper and the others
  std::string library;  // libweft.so
};

// kNotFound: something is missing, and what.
Result<InstallTree> FindInstallTree();

// Where sessions have their folders: short names, since sockets lie in them.
std::string RuntimeFolder();
// The prefix of a session's folder there: "weft-UID-".
std::string SessionPrefix();

}  // namespace weft::cli

#endif  // WEFT_CLI_INSTALL_TREE_H_
