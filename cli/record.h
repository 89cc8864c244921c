// SPDX-License-Identifier: Apache-2.0
// `weft record`: records a program and its children, or running processes and their children, into
// a folder, in local mode.
#ifndef WEFT_CLI_RECORD_H_
#define WEFT_CLI_RECORD_H_

#include <cstdint>
#include <string>
#include <vector>

#include "lib/api/builder.h"

namespace weft::cli {

struct RecordOptions {
  std::string file;  // of Traces; "": the short form counts
  api::ShortForm short_form;
  std::string output;  // "": a new folder with a name of its own
  std::string relay;   // instead of a folder: see relay_address.h
  std::string ctf_version = "1.8";
  std::string summary_file;          // "": none
  bool quiet = false;                // errors only
  bool allow_missing = false;        // of events
  std::vector<std::string> program;  // with its arguments; or
  std::vector<int32_t> pids;         // and all processes with one of these names:
  std::vector<std::string> processes;
};

// The exit status (exit_status.h). Diagnostics, progress and the summary go to stderr; stdin,
// stdout and the terminal are the program's.
int RunRecord(const RecordOptions& options);

}  // namespace weft::cli

#endif  // WEFT_CLI_RECORD_H_
