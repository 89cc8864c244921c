// SPDX-License-Identifier: Apache-2.0
// The types of a function's arguments and of what it returns, as its debug information has them,
// the text in which weft-types reports them, and how they agree with a Trace. The text comes from a
// process that read a tenant's file: it is foreign. Thread-safety: pure functions.
//
// One line for each function, and "done" at the end:
//
//   ADDRESS RETURNS [NAME:TYPE]... [...] [!NAME] [@PATH=STEPS:TYPE | @PATH?NAME[:INSTEAD]]...
//
// ADDRESS in hexadecimal, RETURNS a type or "-". "...": it has a variable number of arguments.
// "@PATH": where a path leads, with "array" or "-" if its end is no scalar; "?": a member that it
// names is not there, INSTEAD being how to write it ("a->b" for "a.b", or the reverse) if only that
// is wrong. "!NAME": this argument and those behind it are not recorded, because of its
// type. Where the types cannot be read, the text is "error: " and the reason.
#ifndef WEFT_NODE_AGENT_HOOKS_FUNCTION_TYPES_H_
#define WEFT_NODE_AGENT_HOOKS_FUNCTION_TYPES_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "lib/api/trace.h"
#include "lib/base/result.h"

namespace weft::hooks {

// Where a path to a member leads (lib/api/function_args.h).
struct MemberPlace {
  std::string steps;                   // the path behind its argument, with numbers: "8.4->16"
  std::optional<api::ValueType> type;  // none: it is no scalar, or not known
  bool is_array = false;
  std::string unknown;  // name of the member that there is not; "": there are all
  std::string instead;  // with an unknown one: how to write it and the one before; "": not known
  bool operator==(const MemberPlace&) const = default;
};

struct FunctionTypes {
  std::vector<api::FunctionArg> args;     // at most WEFT_HOOK_MAX_VALUES
  std::optional<api::ValueType> returns;  // none: nothing, or what is not recorded
  bool is_variable = false;
  std::string not_recorded;  // name of the first argument that is not; "": all are
  // By the path, as asked: it begins with the number of the argument, from 0, or with its name.
  std::map<std::string, MemberPlace> members;
  bool operator==(const FunctionTypes&) const = default;
};

// By the function's address in the file's own numbering.
using TypesByAddress = std::map<uint64_t, FunctionTypes>;

// Names the address of a result that is returned in memory: the caller passes it first.
inline constexpr const char* kResultAddress = "result_address";

inline constexpr const char* kTypesError = "error: ";
inline constexpr const char* kTypesDone = "done\n";
// The argument by which weft-types unpacks symbols.
inline constexpr const char* kUnpack = "unpack";

std::string ToText(const TypesByAddress& types);
// kInvalid: it is no such text, or an error.
Result<TypesByAddress> ParseTypes(std::string_view text);

// Returns a name of a field that is like `name`, and that `before` does not have.
std::string FieldNameLike(std::string_view name, const std::vector<api::FunctionArg>& before);

// Returns why what a Trace says is not what the debug information says; "": it fits. Names may
// differ, and so may the sign of an integer. An address is an integer of its size.
std::string WhyNotFitting(const api::FunctionRule& rule, const FunctionTypes& types);

// Returns the paths that weft-types is asked for.
std::vector<std::string> PathsOf(const std::vector<api::FunctionArg>& args);

// Puts numbers into the paths of a rule. Returns why one cannot be followed, or its type differs
// from the rule's; "": all can.
std::string ResolvePaths(const FunctionTypes& types, api::FunctionRule& rule);

// The argument registers of integers, as words: for functions of which nothing is known.
std::vector<api::FunctionArg> RawRegisters(bool is_go);

}  // namespace weft::hooks

#endif  // WEFT_NODE_AGENT_HOOKS_FUNCTION_TYPES_H_
