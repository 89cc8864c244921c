// SPDX-License-Identifier: Apache-2.0
// Runs one of weft's programs that handle foreign bytes for the agent and answer on a pipe:
// weft-types, weft-debuginfod. Thread-safety: pure functions.
#ifndef WEFT_NODE_AGENT_HOOKS_HELPER_PROGRAM_H_
#define WEFT_NODE_AGENT_HOOKS_HELPER_PROGRAM_H_

#include <chrono>
#include <cstddef>
#include <string>
#include <vector>

#include "lib/base/result.h"

namespace weft::hooks {

struct HelperCall {
  std::string program;  // its path
  std::vector<std::string> arguments;
  std::vector<std::string> environment;  // NAME=VALUE; the agent's own is not handed on
  int input = -1;                        // becomes its descriptor 0; -1: /dev/null
  int file = -1;                         // becomes its descriptor 3
  int second = -1;                       // becomes its descriptor 4; -1: it has none
  std::chrono::seconds patience{};
  size_t max_bytes = 0;  // of its answer
  int stop = -1;         // a descriptor: when it is readable, the program is ended; -1: none
};

// Returns what the program writes to its descriptor 1 until it closes it; the program is ended
// then. kTimeout: it takes longer than `patience`. kLimit: it writes more. kClosed: `stop`. kIo: it
// cannot be started.
Result<std::string> RunHelper(const HelperCall& call);

// Returns where one of weft's programs lies: beside this one.
std::string HelperPath(const std::string& name);

}  // namespace weft::hooks

#endif  // WEFT_NODE_AGENT_HOOKS_HELPER_PROGRAM_H_
