// SPDX-License-Identifier: Apache-2.0
// Rules for names and labels from traced programs: what may go into metadata, onto a terminal, and
// into a file name. Thread-safety: pure functions.
#ifndef WEFT_LIB_EVENT_TEXT_H_
#define WEFT_LIB_EVENT_TEXT_H_

#include <string>
#include <string_view>

namespace weft {

// Well-formed UTF-8 (RFC 3629: no surrogates, no overlong forms) without control characters (below
// U+0020, U+007F to U+009F).
[[nodiscard]] bool IsPrintableUtf8(std::string_view text);

// Returns a printable text with equally many bytes: control characters become spaces and, if it is
// not well-formed UTF-8 then, bytes above 0x7f become question marks.
[[nodiscard]] std::string Printable(std::string_view text);

// Is it a C identifier: [A-Za-z_][A-Za-z0-9_]*?
[[nodiscard]] bool IsIdentifier(std::string_view text);

// Is it an identifier, or the path of a nested field: "a.b[2].c"?
[[nodiscard]] bool IsFieldPath(std::string_view text);

}  // namespace weft

#endif  // WEFT_LIB_EVENT_TEXT_H_
