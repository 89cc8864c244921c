// SPDX-License-Identifier: Apache-2.0
#include "lib/kube/digest.h"

#include <openssl/evp.h>

#include <array>

#include "lib/base/hexadecimal.h"

namespace weft {

Result<std::string> Sha256(std::string_view bytes) {
  std::array<unsigned char, EVP_MAX_MD_SIZE> digest = {};
  unsigned int size = 0;
  if (EVP_Digest(bytes.data(), bytes.size(), digest.data(), &size, EVP_sha256(), nullptr) != 1)
    return Fail(ErrorCode::kUnsupported, "OpenSSL has no SHA-256");
  return ToHexadecimal({reinterpret_cast<const char*>(digest.data()), size});
}

}  // namespace weft
