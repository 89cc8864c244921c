// SPDX-License-Identifier: Apache-2.0
// Base64 with padding, RFC 4648 section 4: how JSON carries bytes. Thread-safety: pure functions.
#ifndef WEFT_LIB_KUBE_BASE64_H_
#define WEFT_LIB_KUBE_BASE64_H_

#include <string>
#include <string_view>

#include "lib/base/result.h"

namespace weft {

// `bytes`: at most 1.5 GiB.
std::string EncodeBase64(std::string_view bytes);

// kCorrupt: another character, a wrong length, bits behind the end that are not zero. At most 2
// GiB.
Result<std::string> DecodeBase64(std::string_view text);

}  // namespace weft

#endif  // WEFT_LIB_KUBE_BASE64_H_
