// SPDX-License-Identifier: Apache-2.0
// UUIDs as text, RFC 4122. Thread-safety: pure functions.
#ifndef WEFT_LIB_CTF_UUID_H_
#define WEFT_LIB_CTF_UUID_H_

#include <string>
#include <string_view>

#include "lib/base/result.h"
#include "lib/ctf/schema.h"

namespace weft::ctf {

std::string FormatUuid(const Uuid& uuid);

// 36 characters, either case.
Result<Uuid> ParseUuid(std::string_view text);

// A random UUID (version 4) from the kernel.
Result<Uuid> NewUuid();

}  // namespace weft::ctf

#endif  // WEFT_LIB_CTF_UUID_H_
