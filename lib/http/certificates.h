// SPDX-License-Identifier: Apache-2.0
// Makes X.509 certificates: a CA and certificates that it signs, with P-256 keys, as PEM.
// Thread-safety: pure functions, except for OpenSSL's random numbers.
#ifndef WEFT_LIB_HTTP_CERTIFICATES_H_
#define WEFT_LIB_HTTP_CERTIFICATES_H_

#include <chrono>
#include <string>
#include <vector>

#include "lib/base/result.h"

namespace weft::http {

struct KeyPair {
  std::string certificate_pem;
  std::string key_pem;  // PKCS #8, not encrypted
};

using WallTime = std::chrono::system_clock::time_point;

// Valid from `now`, less some minutes for other machines' clocks.
struct Validity {
  WallTime now;
  std::chrono::hours lifetime;
};

// A CA that can sign servers' certificates and no other CA's.
Result<KeyPair> MakeAuthority(const std::string& name, const Validity& validity);

// For a server of these DNS names (at least one).
Result<KeyPair> MakeServerCertificate(const KeyPair& authority,
                                      const std::vector<std::string>& dns_names,
                                      const Validity& validity);

// Whether it is signed by `authority_pem`, for `dns_name`, and good for at least `margin` from
// `now` on.
bool IsGoodFor(const std::string& certificate_pem, const std::string& authority_pem,
               const std::string& dns_name, WallTime now, std::chrono::hours margin);

// Whether it is a CA's, signed by itself, and good for at least `margin` from `now` on.
bool IsGoodAuthority(const std::string& certificate_pem, WallTime now, std::chrono::hours margin);

}  // namespace weft::http

#endif  // WEFT_LIB_HTTP_CERTIFICATES_H_
