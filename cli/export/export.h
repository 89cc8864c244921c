// SPDX-License-Identifier: Apache-2.0
// `weft export`: writes a trace in a format of other programs. Called by cli/main.cc on the main
// thread.
#ifndef WEFT_CLI_EXPORT_EXPORT_H_
#define WEFT_CLI_EXPORT_EXPORT_H_

#include <cstdio>
#include <string>
#include <vector>

namespace weft::cli {

// Names of formats, for --to.
inline const std::vector<std::string> kExportFormats = {"perfetto", "chrome-json", "csv", "jsonl"};

struct ExportOptions {
  std::string folder;
  std::string format;  // one of kExportFormats
  std::string output;  // a file to create; "": `out`
  // Events whose field is a counter's value, "provider:event.field"; perfetto and chrome-json.
  std::vector<std::string> counters;
};

// Events go to the output one by one, however large the trace is; what is wrong with the trace and
// a line of progress go to `err`. The exit status: one of cli/open_trace.h, kExitUsage or
// kExitOutput (cli/exit_status.h). A file that could not be written completely is removed.
int RunExport(const ExportOptions& options, std::FILE* out = stdout, std::FILE* err = stderr);

}  // namespace weft::cli

#endif  // WEFT_CLI_EXPORT_EXPORT_H_
