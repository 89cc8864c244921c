// SPDX-License-Identifier: Apache-2.0
// `weft list`: lists the tracepoints that a program or a running process offers.
#ifndef WEFT_CLI_LIST_H_
#define WEFT_CLI_LIST_H_

#include <string>

namespace weft::cli {

struct ListOptions {
  std::string target;  // a program, or the number of a process
  bool fields = false;
  bool json = false;
};

int RunList(const ListOptions& options);

}  // namespace weft::cli

#endif  // WEFT_CLI_LIST_H_
