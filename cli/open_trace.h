// SPDX-License-Identifier: Apache-2.0
// What the commands share that read a trace: how it is opened, and how people learn what was wrong
// with it. Thread-safety: the main thread.
#ifndef WEFT_CLI_OPEN_TRACE_H_
#define WEFT_CLI_OPEN_TRACE_H_

#include <cstdio>
#include <string>

#include "lib/base/result.h"
#include "lib/ctf/trace_reader.h"

namespace weft::cli {

// Exit statuses of the commands that read a trace.
inline constexpr int kShownAll = 0;
inline constexpr int kNotWritten = 1;  // the output could not be written
inline constexpr int kNoTrace = 3;     // no such folder, or no trace in it
inline constexpr int kDamaged = 4;     // something is damaged; the rest was shown

// Raises the limit of open files first: a stream is an open file, and a trace of a large machine
// has more than the usual 1024. Errors: TraceReader::Open's.
Result<ctf::TraceReader> OpenTrace(const std::string& folder);

// Writes what was wrong with the trace to `err`, for the command "weft NAME". kShownAll: nothing;
// else kDamaged.
int ShowProblems(const ctf::TraceReader& reader, const char* name, std::FILE* err);

// Writes `text` to `out` and empties it. False: errno says why not.
bool Flush(std::string& text, std::FILE* out);

// Says that the output could not be written (errno). kShownAll: its reader went away (EPIPE); else
// kNotWritten.
int WriteFailed(const char* name, std::FILE* err);

}  // namespace weft::cli

#endif  // WEFT_CLI_OPEN_TRACE_H_
