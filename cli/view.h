// SPDX-License-Identifier: Apache-2.0
// `weft view`: prints a trace as text, as babeltrace2 does by default, or as one JSON object per
// line. Called by cli/main.cc on the main thread.
#ifndef WEFT_CLI_VIEW_H_
#define WEFT_CLI_VIEW_H_

#include <cstdint>
#include <cstdio>
#include <optional>
#include <string>

namespace weft::cli {

enum class ViewColor { kAuto, kAlways, kNever };

struct ViewOptions {
  std::string folder;
  bool json = false;
  ViewColor color = ViewColor::kAuto;
  std::optional<uint64_t> limit;  // events at most
  bool indent = false;            // by the depth of function calls
};

// Events go to `out`; discarded events and what is wrong with the trace go to `err`, one line each.
// Returns an exit status of cli/open_trace.h. A reader of `out` that goes away (EPIPE) ends the
// call with kShownAll.
int RunView(const ViewOptions& options, std::FILE* out = stdout, std::FILE* err = stderr);

}  // namespace weft::cli

#endif  // WEFT_CLI_VIEW_H_
