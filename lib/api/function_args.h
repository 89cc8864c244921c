// SPDX-License-Identifier: Apache-2.0
// What the arguments of a function's rule say of each other: lengths of bytes, and paths to
// members. Thread-safety: pure functions.
//
//   path  = ["&"] argument ("->" member ("." member)*)+
//   member = a name, or a number of bytes: the member's offset
//
// "request->header.size" reads the member at request + offsets of header and size. Each further
// "->" follows the address that is there. With "&", a text or bytes lie at the member's own place
// (an array), not where it points to.
#ifndef WEFT_LIB_API_FUNCTION_ARGS_H_
#define WEFT_LIB_API_FUNCTION_ARGS_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "lib/api/trace.h"

namespace weft::api {

// Bytes that are recorded as many as the function returns: read at its end.
inline constexpr std::string_view kLengthReturned = "return";

struct MemberPath {
  std::string argument;
  bool is_address = false;                      // "&"
  std::vector<std::vector<std::string>> steps;  // of each "->": its members, with their "."
  bool operator==(const MemberPath&) const = default;
};

// Returns none, with the reason in `why`, if it is no path.
std::optional<MemberPath> ParseMemberPath(std::string_view text, std::string& why);

// Returns the number that a text is: decimal, or hexadecimal with 0x; none: it is no number of at
// most 31 bits.
std::optional<uint32_t> ParseCount(std::string_view text);

// Is it read when the function returns?
bool IsLate(const FunctionArg& arg);
// Is it an argument in C, which has a register or a place on the stack?
bool IsPositional(const FunctionArg& arg);

// Returns what is wrong with the arguments of a rule, with what to do; "": nothing.
std::string WhyNotArgs(const FunctionRule& rule);

}  // namespace weft::api

#endif  // WEFT_LIB_API_FUNCTION_ARGS_H_
