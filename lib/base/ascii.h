// SPDX-License-Identifier: Apache-2.0
// Kinds of ASCII characters. Other than those of <cctype>, these take any char, and no locale
// changes them.
#ifndef WEFT_LIB_BASE_ASCII_H_
#define WEFT_LIB_BASE_ASCII_H_

namespace weft {

constexpr bool IsDigit(char c) { return c >= '0' && c <= '9'; }
constexpr bool IsLower(char c) { return c >= 'a' && c <= 'z'; }
constexpr bool IsUpper(char c) { return c >= 'A' && c <= 'Z'; }
constexpr bool IsLetter(char c) { return IsLower(c) || IsUpper(c); }
// Characters of identifiers in C: the first, and any other.
constexpr bool IsWordStart(char c) { return IsLetter(c) || c == '_'; }
constexpr bool IsWord(char c) { return IsWordStart(c) || IsDigit(c); }

}  // namespace weft

#endif  // WEFT_LIB_BASE_ASCII_H_
