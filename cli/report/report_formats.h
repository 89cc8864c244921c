// SPDX-License-Identifier: Apache-2.0
// The formats of `weft report`. Names are a tenant's: what a terminal would obey is shown as
// "\xNN". Thread-safety: pure functions.
#ifndef WEFT_CLI_REPORT_REPORT_FORMATS_H_
#define WEFT_CLI_REPORT_REPORT_FORMATS_H_

#include <cstdint>
#include <string>

#include "cli/report/call_tree.h"

namespace weft::cli {

// A table of functions, those with the largest total first, and the tree of calls.
std::string ReportText(const CallTree& tree);
// One object; docs/formats/ctf.md names the members.
std::string ReportJson(const CallTree& tree);
// "outer;inner NANOSECONDS" lines with the time of each stack itself, as flame graphs take them.
std::string ReportFolded(const CallTree& tree);

// "1.234 ms": three digits behind the point, for a column.
std::string DurationText(uint64_t ns);

}  // namespace weft::cli

#endif  // WEFT_CLI_REPORT_REPORT_FORMATS_H_
