// SPDX-License-Identifier: Apache-2.0
// Formats what was recorded, as lines for people and as JSON. Pure functions, except for
// CheckSummaryFile.
#ifndef WEFT_CLI_SUMMARY_H_
#define WEFT_CLI_SUMMARY_H_

#include <string>

#include "lib/base/result.h"
#include "lib/ipc/messages.h"

namespace weft::cli {

// Lines, each beginning with "weft: ".
std::string SummaryText(const ipc::SessionState& state);
// One object: {"output", "traces": [{"name", "path", counts...}], "notices"}.
std::string SummaryJson(const ipc::SessionState& state);
// Refuses a file of --summary that cannot be written when the recording ends. Leaves the file
// system as it was, and does not open what may wait for a reader. "": there is none.
Status CheckSummaryFile(const std::string& path);
// Without a newline, for a line that is drawn again and again.
std::string ProgressText(const ipc::SessionState& state);

// "1.2 MiB"
std::string SizeText(uint64_t bytes);

// Did something get lost because the output could not be written?
bool OutputFailed(const ipc::SessionState& state);

}  // namespace weft::cli

#endif  // WEFT_CLI_SUMMARY_H_
