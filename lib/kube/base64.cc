// SPDX-License-Identifier: Apache-2.0
// Base64, by OpenSSL.
#include "lib/kube/base64.h"

#include <openssl/evp.h>

#include <limits>

namespace weft {
namespace {

const unsigned char* Bytes(std::string_view text) {
  return reinterpret_cast<const unsigned char*>(text.data());
}

}  // namespace

std::string EncodeBase64(std::string_view bytes) {
  std::string out((bytes.size() + 2) / 3 * 4, '\0');
  // OpenSSL ends the text with a NUL, for which std::string has room.
  EVP_EncodeBlock(reinterpret_cast<unsigned char*>(out.data()), Bytes(bytes),
                  static_cast<int>(bytes.size()));
  return out;
}

Result<std::string> DecodeBase64(std::string_view text) {
  const auto corrupt = [] { return Fail(ErrorCode::kCorrupt, "not base64"); };
  if (text.size() % 4 != 0 || text.size() > std::numeric_limits<int>::max()) return corrupt();
  std::string out(text.size() / 4 * 3, '\0');
  const int size = EVP_DecodeBlock(reinterpret_cast<unsigned char*>(out.data()), Bytes(text),
                                   static_cast<int>(text.size()));
  if (size < 0) return corrupt();
  std::size_t padding = 0;
  while (padding < 2 && padding < text.size() && text[text.size() - 1 - padding] == '=') ++padding;
  out.resize(static_cast<std::size_t>(size) - padding);
  // OpenSSL accepts spaces at both ends, padding inside and bits behind the end: none of these is
  // the encoding of `out`.
  if (EncodeBase64(out) != text) return corrupt();
  return out;
}

}  // namespace weft
