// SPDX-License-Identifier: Apache-2.0
// Chooses the clock of this machine's rings, and how many slots they have. Reads sysfs only.
#ifndef WEFT_NODE_AGENT_AGENT_BASE_CLOCK_CHOICE_H_
#define WEFT_NODE_AGENT_AGENT_BASE_CLOCK_CHOICE_H_

#include <cstdint>
#include <string>

#include "lib/abi/ring.h"

namespace weft::agent {

// `sysfs`: "/sys", or a test's folder. WEFT_CLOCK_TSC where tsc is available and is the kernel's
// own clock source (the kernel leaves it when it marks it unstable); on arm64 where it is
// arch_sys_counter. Else WEFT_CLOCK_MONOTONIC.
weft_clock_id ChooseClock(const std::string& sysfs);

// Possible CPUs, at least 1 and at most what a ring set may have.
uint32_t PossibleCpus(const std::string& sysfs);

}  // namespace weft::agent

#endif  // WEFT_NODE_AGENT_AGENT_BASE_CLOCK_CHOICE_H_
