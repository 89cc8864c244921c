// SPDX-License-Identifier: Apache-2.0
// `weft report`: prints how often functions were called and how long they took, and the tree of
// their calls. Called by cli/main.cc on the main thread.
#ifndef WEFT_CLI_REPORT_REPORT_H_
#define WEFT_CLI_REPORT_REPORT_H_

#include <cstdio>
#include <string>
#include <vector>

namespace weft::cli {

// Names of formats, for --to. folded: a line per stack, for flame graphs.
inline const std::vector<std::string> kReportFormats = {"text", "json", "folded"};

struct ReportOptions {
  std::string folder;
  std::string format = "text";  // one of kReportFormats
};

// The report goes to `out`; what is missing in it or wrong with the trace goes to `err`. Returns an
// exit status of cli/open_trace.h.
int RunReport(const ReportOptions& options, std::FILE* out = stdout, std::FILE* err = stderr);

}  // namespace weft::cli

#endif  // WEFT_CLI_REPORT_REPORT_H_
