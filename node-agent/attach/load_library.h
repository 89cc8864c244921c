// SPDX-License-Identifier: Apache-2.0
// Loads libweft.so into a running process, without its dynamic linker: the process makes a memfd
// and maps it, the agent writes the library into that memory, the process maps the segments, the
// agent relocates them from outside, and one thread of the process runs the constructors
// (docs/adr/0060), on another stack. The library makes a control area, which the agent adopts. All
// other threads run on.
//
// A failure at any point, also the death of the agent, leaves a process that runs as before.
#ifndef WEFT_NODE_AGENT_ATTACH_LOAD_LIBRARY_H_
#define WEFT_NODE_AGENT_ATTACH_LOAD_LIBRARY_H_

#include <chrono>
#include <cstdint>
#include <functional>
#include <string>

#include "lib/base/result.h"

namespace weft::attach {

struct LoadOptions {
  std::string library;    // path of libweft.so
  std::string folder;     // where the library looks for the agent
  std::string container;  // its name in that folder, for which there is no control file
  // Asked when a thread is stopped, before it is changed: is this still the process that is meant?
  // The process has had one id since CheckTarget looked at it. Empty: it is.
  std::function<bool(int32_t pid)> is_meant;
};

// How long threads of the process stood still, together: the one that is used, and then all.
using StopTime = std::chrono::nanoseconds;

// In a process that has the library, does only what an agent that died did not finish, and what a
// recording took back at its end: functions of the C library lead to the library
// (replace_functions.h), which is woken (give_back.h). If the library's constructors have not run,
// it is loaded once more. Errors as those of CheckTarget. kNotFound also: it is not the one that is
// meant. Blocks for some milliseconds.
Status LoadLibrary(int32_t pid, const LoadOptions& options);
// Likewise, and adds to `stopped`.
Status LoadLibrary(int32_t pid, const LoadOptions& options, StopTime& stopped);

// Returns the path of the library that belongs to this program.
std::string OwnLibrary();

}  // namespace weft::attach

#endif  // WEFT_NODE_AGENT_ATTACH_LOAD_LIBRARY_H_
