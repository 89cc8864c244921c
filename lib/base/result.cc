// SPDX-License-Identifier: Apache-2.0
// Names of the error codes, for logs and tests.
#include "lib/base/result.h"

namespace weft {

std::string_view ErrorCodeName(ErrorCode code) {
  switch (code) {
    case ErrorCode::kInvalid:
      return "invalid";
    case ErrorCode::kNotFound:
      return "not found";
    case ErrorCode::kCorrupt:
      return "corrupt";
    case ErrorCode::kUnsupported:
      return "unsupported";
    case ErrorCode::kLimit:
      return "limit";
    case ErrorCode::kIo:
      return "i/o";
    case ErrorCode::kClosed:
      return "closed";
    case ErrorCode::kTimeout:
      return "timeout";
    case ErrorCode::kPermission:
      return "permission";
    case ErrorCode::kConflict:
      return "conflict";
  }
  return "unknown";
}

}  // namespace weft
