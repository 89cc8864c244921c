// SPDX-License-Identifier: Apache-2.0
// See load_library.h: on machines other than x86-64.
#include "node-agent/attach/load_library.h"

namespace weft::attach {

Status LoadLibrary(int32_t pid, const LoadOptions&) {
  return Fail(
      ErrorCode::kUnsupported,
      "process " + std::to_string(pid) +
          " was not started with libweft.so: weft loads it into running processes on x86-64 "
          "only; start it with weft record ... -- PROGRAM");
}

std::string OwnLibrary() { return ""; }

}  // namespace weft::attach
