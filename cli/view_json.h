// SPDX-License-Identifier: Apache-2.0
// Prints events as JSON, one object per line; docs/formats/ctf.md names the members. Called by
// view.cc. Thread-safety: pure functions.
#ifndef WEFT_CLI_VIEW_JSON_H_
#define WEFT_CLI_VIEW_JSON_H_

#include <cstdint>
#include <string>

#include "lib/ctf/stream_reader.h"

namespace weft::cli {

// Appends the line of the stream's current item.
void AppendJson(ctf::StreamReader& stream, std::string& out);

// Appends a time as "2026-11-27T19:05:36.339962338Z", with the quotes; null where there is none.
void AppendIsoTime(std::string& out, int64_t ns);

}  // namespace weft::cli

#endif  // WEFT_CLI_VIEW_JSON_H_
