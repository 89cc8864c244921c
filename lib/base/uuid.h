// SPDX-License-Identifier: Apache-2.0
// UUIDs and their text, RFC 4122. Any thread.
#ifndef WEFT_LIB_BASE_UUID_H_
#define WEFT_LIB_BASE_UUID_H_

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

#include "lib/base/result.h"

namespace weft {

using Uuid = std::array<uint8_t, 16>;

std::string FormatUuid(const Uuid& uuid);

// 36 characters, either case.
Result<Uuid> ParseUuid(std::string_view text);

// Returns a UUID of version 4, from the kernel's random numbers.
Uuid RandomUuid();

}  // namespace weft

#endif  // WEFT_LIB_BASE_UUID_H_
