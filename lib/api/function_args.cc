// SPDX-License-Identifier: Apache-2.0
// See function_args.h.
#include "lib/api/function_args.h"

#include <algorithm>
#include <charconv>

#include "lib/api/limits.h"
#include "lib/api/names.h"
#include "lib/api/value_type.h"

namespace weft::api {
namespace {

constexpr const char* kPathForm =
    "must be ARGUMENT->MEMBER or ARGUMENT->MEMBER.MEMBER->..., where a member is a name, or the "
    "number of its first byte";

bool IsMember(std::string_view text) {
  return ParseCount(text).has_value() || CheckIdentifier(text).empty();
}

// Takes the text up to `separator`, or all of it; true: there was one.
bool Take(std::string_view& text, std::string_view separator, std::string_view& part) {
  const size_t end = text.find(separator);
  part = text.substr(0, end);
  text.remove_prefix(end == std::string_view::npos ? text.size() : end + separator.size());
  return end != std::string_view::npos;
}

std::string Quoted(std::string_view text) { return "\"" + std::string(text) + "\""; }

// The names of the arguments for which `is` holds, for people.
template <typename Is>
std::string List(const std::vector<FunctionArg>& args, const Is& is) {
  std::string text;
  for (const FunctionArg& arg : args)
    if (is(arg)) text += (text.empty() ? "" : ", ") + arg.name;
  return text.empty() ? "none" : text;
}

const FunctionArg* Find(const std::vector<FunctionArg>& args, std::string_view name) {
  const auto at = std::ranges::find_if(
      args, [&](const FunctionArg& arg) { return IsPositional(arg) && arg.name == name; });
  return at == args.end() ? nullptr : &*at;
}

bool IsCount(const FunctionArg& arg) {
  return IsPositional(arg) && SizeOf(arg.type) != 0 && !IsFloat(arg.type);
}

std::string WhyNotLength(const FunctionRule& rule, const FunctionArg& arg) {
  if (arg.type != ValueType::kBytes)
    return arg.length.empty() ? "" : "has a length, which only type bytes has; leave it out";
  if (arg.length.empty())
    return "needs a length: the name of the argument that has it, a number, or return";
  if (arg.length == kLengthReturned) {
    if (!rule.returns || SizeOf(*rule.returns) == 0 || IsFloat(*rule.returns))
      return "has length: return, so the rule needs returns: an integer type, such as int64";
    return rule.Records(FunctionMoment::kExit) || rule.Records(FunctionMoment::kCall)
               ? ""
               : "is known at the function's end: record exit or call";
  }
  if (ParseCount(arg.length)) return "";
  const bool has_positional = std::ranges::any_of(rule.args, IsPositional);
  const FunctionArg* of = Find(rule.args, arg.length);
  if (of == nullptr ? has_positional : !IsCount(*of))
    return "has length " + Quoted(arg.length) +
           ", which is no integer argument of the rule (they are: " + List(rule.args, IsCount) +
           "), no number and not return";
  return "";
}

std::string WhyNotPath(const FunctionRule& rule, const FunctionArg& arg) {
  if (arg.path.empty()) return "";
  std::string why;
  const auto path = ParseMemberPath(arg.path, why);
  if (!path) return "has the path " + Quoted(arg.path) + ": it " + why;
  if (path->is_address && SizeOf(arg.type) != 0)
    return "has a path with &, which is for type string and bytes: leave out the &";
  // Without any, they are those of the debug information.
  if (std::ranges::none_of(rule.args, IsPositional)) return "";
  const FunctionArg* of = Find(rule.args, path->argument);
  if (of == nullptr || (SizeOf(of->type) != sizeof(uint64_t) || IsFloat(of->type)))
    return "has the path " + Quoted(arg.path) + ", and " + Quoted(path->argument) +
           " is no argument of type pointer (they are: " +
           List(rule.args,
                [](const FunctionArg& a) {
                  return IsPositional(a) && SizeOf(a.type) == sizeof(uint64_t) && !IsFloat(a.type);
                }) +
           ")";
  return "";
}

}  // namespace

std::optional<uint32_t> ParseCount(std::string_view text) {
  const bool is_hex = text.starts_with("0x");
  if (is_hex) text.remove_prefix(2);
  uint32_t number = 0;
  const auto [end, error] =
      std::from_chars(text.data(), text.data() + text.size(), number, is_hex ? 16 : 10);
  if (error != std::errc() || end != text.data() + text.size() || number > INT32_MAX)
    return std::nullopt;
  return number;
}

std::optional<MemberPath> ParseMemberPath(std::string_view text, std::string& why) {
  MemberPath path;
  why = kPathForm;
  if (text.starts_with("&")) {
    path.is_address = true;
    text.remove_prefix(1);
  }
  std::string_view part;
  bool more = Take(text, "->", part);
  if (!more || !CheckIdentifier(part).empty()) return std::nullopt;
  path.argument = part;
  while (more) {
    more = Take(text, "->", part);
    std::vector<std::string>& members = path.steps.emplace_back();
    for (bool dot = true; dot;) {
      std::string_view member;
      dot = Take(part, ".", member);
      if (!IsMember(member)) return std::nullopt;
      members.emplace_back(member);
    }
  }
  if (path.steps.size() > limits::kPathSteps) {
    why = "must have at most " + std::to_string(limits::kPathSteps) + " ->";
    return std::nullopt;
  }
  why.clear();
  return path;
}

bool IsLate(const FunctionArg& arg) {
  return arg.type == ValueType::kBytes && arg.length == kLengthReturned;
}

bool IsPositional(const FunctionArg& arg) { return arg.path.empty(); }

std::string WhyNotArgs(const FunctionRule& rule) {
  for (const FunctionArg& arg : rule.args) {
    if (std::ranges::count(rule.args, arg.name, &FunctionArg::name) != 1)
      return "argument " + Quoted(arg.name) + " is there twice; give each a name of its own";
    std::string why = WhyNotLength(rule, arg);
    if (why.empty()) why = WhyNotPath(rule, arg);
    if (!why.empty()) return "argument " + Quoted(arg.name) + " " + why;
  }
  return "";
}

}  // namespace weft::api
