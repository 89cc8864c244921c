// SPDX-License-Identifier: Apache-2.0
// Hooks functions of a process that weft record started, and takes the hooks off again, many times;
// a test kills this program at any point of that.
//   local_functions_switch PID TIMES            functions of local_functions
//   local_functions_switch PID TIMES OBJECT     all functions of an object
#include <unistd.h>

#include <cstdio>
#include <cstdlib>

#include "node-agent/hooks/hook_process.h"

int main(int argc, char** argv) {
  using weft::hooks::HookRule;
  if (argc != 3 && argc != 4) return 2;
  std::vector<HookRule> rules;
  const auto add = [&rules](const char* name, const char* object) {
    HookRule& rule = rules.emplace_back();
    rule.trace = "t";
    rule.rule.name = name;
    rule.rule.object = object;
  };
  if (argc == 4) {
    add("*", argv[3]);
  } else {
    for (const char* name : {"many_arguments", "of_doubles", "of_floats", "of_pairs", "recursive",
                             "of_long_doubles", "tail_call", "last_call", "variable", "by_table"})
      add(name, "local_functions");
  }
  weft::hooks::FunctionCache cache;
  int tries = 0;
  for (int i = 0; i < std::atoi(argv[2]);) {
    weft::hooks::HookReport report;
    const auto done = weft::hooks::HookProcess(
        std::atoi(argv[1]), i % 2 == 0 ? std::vector<HookRule>{} : rules, cache, report);
    if (done) {
      ++i;
    } else if (done.error().code == weft::ErrorCode::kPermission && ++tries < 1000) {
      usleep(1000);  // the agent of the recording stops the process, too
    } else {
      std::fprintf(stderr, "%s\n", done.error().message.c_str());
      return 1;
    }
  }
  return 0;
}
