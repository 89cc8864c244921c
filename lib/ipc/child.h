// SPDX-License-Identifier: Apache-2.0
// Starts one of weft's processes in a session of its own, since a terminal's ^C is meant for the
// traced program. It has a connection to its parent as descriptor kKeeperFd, where there is a lease
// that as kLeaseFd, no other descriptors except the standard ones, and default signals.
#ifndef WEFT_LIB_IPC_CHILD_H_
#define WEFT_LIB_IPC_CHILD_H_

#include <sys/types.h>

#include <string>
#include <vector>

#include "lib/base/result.h"
#include "lib/ipc/connection.h"

namespace weft::ipc {

struct Child {
  pid_t pid = -1;
  Connection connection;
};

// `lease`: a descriptor above kLeaseFd; -1: none. kIo: there is no such program, or no process
// could be made.
Result<Child> StartChild(const std::string& program, const std::vector<std::string>& arguments,
                         int lease = -1);

// "exit status 1", "killed by signal 9", from a status of waitpid.
std::string DescribeExit(int status);

}  // namespace weft::ipc

#endif  // WEFT_LIB_IPC_CHILD_H_
