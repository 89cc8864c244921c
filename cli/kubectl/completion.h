// SPDX-License-Identifier: Apache-2.0
// Shell completion: which words may stand where the user types, of the commands that CLI11 knows
// and of the cluster. kubectl asks plugins for it in the way of `__complete`
// (kubectl_complete-weft), and so do the scripts for bash, zsh and fish. Thread-safety: one thread.
#ifndef WEFT_CLI_KUBECTL_COMPLETION_H_
#define WEFT_CLI_KUBECTL_COMPLETION_H_

#include <CLI/App.hpp>
#include <functional>
#include <string>
#include <vector>

namespace weft::kubectl {

// Names in the cluster, for a command line's flags of the connection: "-n", "shop". Empty where
// they cannot be had in time.
struct Names {
  std::function<std::vector<std::string>(const std::vector<std::string>& flags)> traces;
  std::function<std::vector<std::string>(const std::vector<std::string>& flags)> namespaces;
};

// Candidates for the last of `words`, which is "" if none of it is typed yet: one a line, with a
// tab and a description where there is one, then ":4", or ":0" where a file's name is expected.
std::string Complete(CLI::App& app, const std::vector<std::string>& words, const Names& names);

// The names of Names, from the API server.
Names NamesInCluster();

// Prints the script of a shell, which is one of kShells.
inline const std::vector<std::string>& Shells() {
  static const std::vector<std::string>& shells =
      *new std::vector<std::string>{"bash", "fish", "zsh"};
  return shells;
}
const char* CompletionScript(const std::string& shell);

}  // namespace weft::kubectl

#endif  // WEFT_CLI_KUBECTL_COMPLETION_H_
