// SPDX-License-Identifier: Apache-2.0
// Makes weft.ko's programs (lib/abi/fetch.h) of the steps that fetch an event's fields.
// Thread-safety: functions without state.
#ifndef WEFT_NODE_AGENT_KERNEL_FETCH_PROGRAM_H_
#define WEFT_NODE_AGENT_KERNEL_FETCH_PROGRAM_H_

#include <span>
#include <vector>

#include "lib/abi/fetch.h"
#include "node-agent/kernel/fetch_step.h"

namespace weft::kernel {

// Makes one operation for each step. weft_fetch_validate decides whether the program is valid.
std::vector<weft_fetch_op> FetchProgram(std::span<const FetchStep> steps);

}  // namespace weft::kernel

#endif  // WEFT_NODE_AGENT_KERNEL_FETCH_PROGRAM_H_
