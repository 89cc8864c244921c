// SPDX-License-Identifier: Apache-2.0
#include "lib/base/uuid.h"

#include <sys/random.h>

#include <cstdlib>

namespace weft {
namespace {

constexpr bool IsDash(size_t byte) { return byte == 4 || byte == 6 || byte == 8 || byte == 10; }

int HexValue(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

}  // namespace

std::string FormatUuid(const Uuid& uuid) {
  static constexpr char kHex[] = "0123456789abcdef";
  std::string out;
  for (size_t i = 0; i < uuid.size(); i++) {
    if (IsDash(i)) out += '-';
    out += kHex[uuid[i] >> 4];
    out += kHex[uuid[i] & 15];
  }
  return out;
}

Result<Uuid> ParseUuid(std::string_view text) {
  Uuid uuid{};
  size_t at = 0;
  bool ok = text.size() == 36;
  for (size_t i = 0; ok && i < uuid.size(); i++) {
    if (IsDash(i)) ok = text[at++] == '-';
    const int high = HexValue(text[at++]);
    const int low = HexValue(text[at++]);
    ok = ok && high >= 0 && low >= 0;
    if (ok) uuid[i] = static_cast<uint8_t>(high * 16 + low);
  }
  if (!ok) return Fail(ErrorCode::kInvalid, "not a UUID");
  return uuid;
}

Uuid RandomUuid() {
  Uuid uuid{};
  // The kernel gives that few bytes whole, or was not built with it.
  if (::getrandom(uuid.data(), uuid.size(), 0) != ssize_t{uuid.size()}) std::abort();
  uuid[6] = static_cast<uint8_t>((uuid[6] & 0x0f) | 0x40);
  uuid[8] = static_cast<uint8_t>((uuid[8] & 0x3f) | 0x80);
  return uuid;
}

}  // namespace weft
