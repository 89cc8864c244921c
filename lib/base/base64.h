// SPDX-License-Identifier: Apache-2.0
// Base64 with padding, RFC 4648 section 4: how JSON carries bytes. Thread-safety: pure functions.
#ifndef WEFT_LIB_BASE_BASE64_H_
#define WEFT_LIB_BASE_BASE64_H_

#include <string>
#include <string_view>

#include "lib/base/result.h"

namespace weft {

std::string EncodeBase64(std::string_view bytes);

// kCorrupt: another character, a wrong length, bits behind the end that are not zero.
Result<std::string> DecodeBase64(std::string_view text);

}  // namespace weft

#endif  // WEFT_LIB_BASE_BASE64_H_
