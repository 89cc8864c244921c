// SPDX-License-Identifier: Apache-2.0
// See load_library.h: on machines other than x86-64.
#include "node-agent/attach/load_library.h"

namespace weft::attach {

Status LoadLibrary(int32_t, const LoadOptions&) {
  return Fail(ErrorCode::kUnsupported,
              "weft loads it into running processes on x86-64 only; start the program with it");
}

std::string OwnLibrary() { return ""; }

}  // namespace weft::attach
