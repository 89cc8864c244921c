// SPDX-License-Identifier: Apache-2.0
// Would a seccomp filter of a process kill it for a call that libweft.so makes without a trial of
// its own? A child of this process takes each filter over and makes these calls.
#ifndef WEFT_NODE_AGENT_ATTACH_FILTER_CHECK_H_
#define WEFT_NODE_AGENT_ATTACH_FILTER_CHECK_H_

#include <linux/filter.h>

#include <cstdint>
#include <vector>

#include "lib/base/result.h"

namespace weft::attach {

// `tid`: a thread that this one traces, and that is stopped. kUnsupported: a filter kills, or it
// cannot be read.
Status CheckFilters(int32_t tid);
// kUnsupported: this filter kills, or this process may not take it over.
Status CheckFilter(const std::vector<sock_filter>& code);

}  // namespace weft::attach

#endif  // WEFT_NODE_AGENT_ATTACH_FILTER_CHECK_H_
