// SPDX-License-Identifier: Apache-2.0
// SHA-256, as resources carry it. Thread-safety: a pure function.
#ifndef WEFT_LIB_KUBE_DIGEST_H_
#define WEFT_LIB_KUBE_DIGEST_H_

#include <string>
#include <string_view>

#include "lib/base/result.h"

namespace weft {

// Returns the digest in 64 hexadecimal digits. kUnsupported: OpenSSL has no SHA-256.
Result<std::string> Sha256(std::string_view bytes);

}  // namespace weft

#endif  // WEFT_LIB_KUBE_DIGEST_H_
