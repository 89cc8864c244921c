// SPDX-License-Identifier: Apache-2.0
// Hooks functions of local_functions in a process that weft record started, and takes the hooks off
// again, many times; a test kills this program at any point of that.
//   local_functions_switch PID TIMES
#include <cstdio>
#include <cstdlib>

#include "node-agent/hooks/hook_process.h"

int main(int argc, char** argv) {
  using weft::hooks::HookRule;
  if (argc != 3) return 2;
  std::vector<HookRule> rules;
  for (const char* name : {"many_arguments", "of_doubles", "of_floats", "of_pairs", "recursive",
                           "of_long_doubles", "tail_call", "last_call", "variable", "by_table"}) {
    HookRule& rule = rules.emplace_back();
    rule.trace = "t";
    rule.rule.name = name;
    rule.rule.object = "local_functions";
  }
  weft::hooks::FunctionCache cache;
  for (int i = 0; i < std::atoi(argv[2]); ++i) {
    weft::hooks::HookReport report;
    const auto done = weft::hooks::HookProcess(
        std::atoi(argv[1]), i % 2 == 0 ? std::vector<HookRule>{} : rules, cache, report);
    if (!done) {
      std::fprintf(stderr, "%s\n", done.error().message.c_str());
      return 1;
    }
  }
  return 0;
}
