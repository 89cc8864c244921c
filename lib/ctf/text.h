// SPDX-License-Identifier: Apache-2.0
// UTF-8, for names in metadata and for readers. Foreign text becomes valid text, in place and
// without growing: JSON refuses what is not UTF-8. Thread-safety: pure functions.
#ifndef WEFT_LIB_CTF_TEXT_H_
#define WEFT_LIB_CTF_TEXT_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace weft::ctf {

// Returns the bytes of the well-formed UTF-8 sequence (RFC 3629) that `text` begins with, 1 to 4;
// 0: none. `text` is not empty.
size_t Utf8Length(std::string_view text);

bool IsUtf8(std::string_view text);

// Returns the number of bytes before the first NUL, at most `size`. Replaces every byte of them
// that is not part of well-formed UTF-8 (RFC 3629) by '?'.
size_t MakeTextValid(uint8_t* text, size_t size);

// Returns a copy of the text up to its first NUL, made valid as by MakeTextValid. Control
// characters stay: both metadata formats have escapes for them.
std::string ValidText(std::string_view text);

// Returns a name for people to see: valid UTF-8, with control characters as '?'.
std::string PrintableName(std::string_view name);

// Returns a name of [A-Za-z0-9_]+: an identifier of TSDL and C, except that it may begin with a
// digit.
std::string IdentifierName(std::string_view name);

}  // namespace weft::ctf

#endif  // WEFT_LIB_CTF_TEXT_H_
