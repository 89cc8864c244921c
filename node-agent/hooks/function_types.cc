// SPDX-License-Identifier: Apache-2.0
// See function_types.h.
#include "node-agent/hooks/function_types.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cstdio>
#include <cstring>
#include <iterator>

#include "lib/abi/hooks.h"
#include "lib/api/function_args.h"
#include "lib/api/value_type.h"
#include "node-agent/hooks/limits.h"

namespace weft::hooks {
namespace {

using api::ValueType;

constexpr size_t kMaxErrorBytes = 200;
constexpr std::string_view kDone = kTypesDone;
constexpr std::string_view kArray = "array";

std::unexpected<Error> Invalid() {
  return Fail(ErrorCode::kInvalid, "weft-types' answer is wrong");
}

std::optional<ValueType> TypeNamed(std::string_view name) {
  const auto at = std::ranges::find(api::kValueTypes, name);
  if (at == api::kValueTypes.end()) return std::nullopt;
  const auto type = static_cast<ValueType>(at - api::kValueTypes.begin());
  return api::SizeOf(type) == 0 ? std::nullopt : std::optional(type);
}

bool IsFieldName(std::string_view name) {
  return !name.empty() && name.size() <= kMaxFieldNameBytes &&
         std::isdigit(static_cast<unsigned char>(name[0])) == 0 &&
         std::ranges::all_of(name, [](char c) {
           return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_';
         });
}

// Takes the text up to a separator, or all of it.
std::string_view Take(std::string_view& text, char separator) {
  const size_t end = std::min(text.find(separator), text.size());
  const std::string_view part = text.substr(0, end);
  text.remove_prefix(std::min(end + 1, text.size()));
  return part;
}

std::string Printable(std::string_view text) {
  std::string out;
  for (const char c : text) out += std::isprint(static_cast<unsigned char>(c)) != 0 ? c : '?';
  return out;
}

// Has a path numbers only?
bool HasNumbers(const api::MemberPath& path) {
  for (const auto& step : path.steps)
    for (const std::string& member : step)
      if (!api::ParseCount(member)) return false;
  return true;
}

bool AreSteps(const std::string& steps) {
  std::string why;
  const auto path = api::ParseMemberPath("a->" + steps, why);
  return path && HasNumbers(*path);
}

// Is it "a->b" or "a.b"?
bool IsTwoMembers(std::string_view text) {
  const size_t end = std::min(text.find_first_of(".-"), text.size());
  const std::string_view behind = text.substr(end);
  return IsFieldName(text.substr(0, end)) &&
         ((behind.starts_with("->") && IsFieldName(behind.substr(2))) ||
          (behind.starts_with(".") && IsFieldName(behind.substr(1))));
}

Status ParseMember(std::string_view part, FunctionTypes& types) {
  MemberPlace place;
  const size_t end = part.find_first_of("=?");
  if (end == std::string_view::npos) return Invalid();
  const std::string path(part.substr(0, end));
  const bool is_known = part[end] == '=';
  part.remove_prefix(end + 1);
  if (is_known) {
    place.steps = Take(part, ':');
    place.type = TypeNamed(part);
    place.is_array = part == kArray;
    if (!AreSteps(place.steps) || (!place.type && !place.is_array && part != "-")) return Invalid();
  } else {
    place.unknown = Take(part, ':');
    place.instead = part;
    if (!IsFieldName(place.unknown) || (!part.empty() && !IsTwoMembers(part))) return Invalid();
  }
  if (!types.members.emplace(path, std::move(place)).second) return Invalid();
  return {};
}

// The path as weft-types is asked for it.
std::string AskedPath(const std::vector<api::FunctionArg>& args, const api::FunctionArg& arg) {
  std::string_view text = arg.path;
  if (text.starts_with('&')) text.remove_prefix(1);
  const std::string_view base = text.substr(0, text.find("->"));
  size_t number = 0;
  for (const api::FunctionArg& one : args) {
    if (!IsPositional(one)) continue;
    if (one.name == base) return std::to_string(number).append(text.substr(base.size()));
    ++number;
  }
  return std::string(text);
}

bool HasNames(const api::FunctionArg& arg) {
  std::string why;
  const auto path = api::ParseMemberPath(arg.path, why);
  return path && !HasNumbers(*path);
}

Status ParseArgument(std::string_view part, FunctionTypes& types) {
  if (part == "...") {
    types.is_variable = true;
    return {};
  }
  if (part.starts_with('@')) return ParseMember(part.substr(1), types);
  if (part.starts_with('!')) {
    if (!IsFieldName(part.substr(1))) return Invalid();
    types.not_recorded = part.substr(1);
    return {};
  }
  const std::string_view name = Take(part, ':');
  const auto type = TypeNamed(part);
  if (!IsFieldName(name) || !type || types.args.size() == WEFT_HOOK_MAX_VALUES ||
      std::ranges::any_of(types.args, [&](const auto& arg) { return arg.name == name; }))
    return Invalid();
  types.args.push_back({.name = std::string(name), .type = *type});
  return {};
}

// Have they the same place and size?
bool Fits(ValueType wanted, ValueType is) {
  if (wanted == ValueType::kString || wanted == ValueType::kBytes) return is == ValueType::kPointer;
  return api::IsFloat(wanted) == api::IsFloat(is) && api::SizeOf(wanted) == api::SizeOf(is);
}

std::string Differs(const std::string& what, ValueType wanted, ValueType is) {
  std::string text = what;
  text.append(" is ").append(api::NameOf(wanted)).append(" in the Trace, and ");
  return text.append(api::NameOf(is)).append(" in the debug information: give that type");
}

}  // namespace

std::string ToText(const TypesByAddress& types) {
  std::string text;
  for (const auto& [address, function] : types) {
    char number[20];
    std::snprintf(number, sizeof(number), "%llx", static_cast<unsigned long long>(address));
    text.append(number).append(" ");
    text.append(function.returns ? api::NameOf(*function.returns) : "-");
    for (const api::FunctionArg& arg : function.args)
      text.append(" ").append(arg.name).append(":").append(api::NameOf(arg.type));
    if (function.is_variable) text += " ...";
    if (!function.not_recorded.empty()) text.append(" !").append(function.not_recorded);
    for (const auto& [path, place] : function.members) {
      text.append(" @").append(path);
      if (!place.unknown.empty()) {
        text.append("?").append(place.unknown);
        if (!place.instead.empty()) text.append(":").append(place.instead);
        continue;
      }
      text.append("=").append(place.steps).append(":");
      text.append(place.type ? api::NameOf(*place.type) : place.is_array ? kArray : "-");
    }
    text += "\n";
  }
  return text.append(kDone);
}

Result<TypesByAddress> ParseTypes(std::string_view text) {
  TypesByAddress all;
  if (text.starts_with(kTypesError))
    return Fail(ErrorCode::kInvalid,
                "its debug information cannot be read: " +
                    Printable(text.substr(std::strlen(kTypesError), kMaxErrorBytes)));
  if (!text.ends_with(kDone)) return Invalid();
  text.remove_suffix(kDone.size());
  while (!text.empty()) {
    std::string_view line = Take(text, '\n');
    const std::string_view number = Take(line, ' ');
    uint64_t address = 0;
    const auto parsed = std::from_chars(number.data(), number.data() + number.size(), address, 16);
    if (parsed.ec != std::errc() || parsed.ptr != number.data() + number.size()) return Invalid();
    FunctionTypes types;
    const std::string_view returns = Take(line, ' ');
    types.returns = TypeNamed(returns);
    if (!types.returns && returns != "-") return Invalid();
    while (!line.empty()) WEFT_TRY(ParseArgument(Take(line, ' '), types));
    if (!all.emplace(address, std::move(types)).second) return Invalid();
  }
  return all;
}

std::string FieldNameLike(std::string_view name, const std::vector<api::FunctionArg>& before) {
  std::string like;
  for (const char c : name.substr(0, kMaxFieldNameBytes - 4))
    like += std::isalnum(static_cast<unsigned char>(c)) != 0 ? c : '_';
  if (like.empty()) like = "arg" + std::to_string(before.size());
  if (std::isdigit(static_cast<unsigned char>(like[0])) != 0) like.insert(0, "_");
  const auto is_taken = [&](const std::string& text) {
    return std::ranges::any_of(before, [&](const auto& arg) { return arg.name == text; });
  };
  std::string unique = like;
  for (int i = 2; is_taken(unique); ++i) unique = like + std::to_string(i);
  return unique;
}

std::string WhyNotFitting(const api::FunctionRule& rule, const FunctionTypes& types) {
  std::vector<api::FunctionArg> args;
  std::ranges::copy_if(rule.args, std::back_inserter(args), api::IsPositional);
  for (size_t i = 0; i < args.size(); ++i) {
    const api::FunctionArg& arg = args[i];
    if (i < types.args.size()) {
      if (Fits(arg.type, types.args[i].type)) continue;
      return Differs("argument " + std::to_string(i + 1) + " \"" + arg.name + "\" (\"" +
                         types.args[i].name + "\")",
                     arg.type, types.args[i].type);
    }
    if (!types.not_recorded.empty())
      return "argument " + std::to_string(i + 1) + " \"" + arg.name + "\" is " +
             std::string(api::NameOf(arg.type)) + " in the Trace, and in the debug information \"" +
             types.not_recorded +
             "\" has a type that is not recorded: give the arguments before it";
    if (types.is_variable || types.args.size() == WEFT_HOOK_MAX_VALUES) break;
    return "the Trace has " + std::to_string(args.size()) +
           " arguments, and the debug information " + std::to_string(types.args.size()) +
           ": give no more";
  }
  if (rule.returns && !types.returns)
    return "returns is " + std::string(api::NameOf(*rule.returns)) +
           " in the Trace, and nothing that is recorded in the debug information: leave it out";
  if (rule.returns && !Fits(*rule.returns, *types.returns))
    return Differs("returns", *rule.returns, *types.returns);
  return "";
}

std::vector<std::string> PathsOf(const std::vector<api::FunctionArg>& args) {
  std::vector<std::string> paths;
  for (const api::FunctionArg& arg : args)
    if (HasNames(arg)) paths.push_back(AskedPath(args, arg));
  return paths;
}

std::string ResolvePaths(const FunctionTypes& types, api::FunctionRule& rule) {
  const std::vector<api::FunctionArg> before = rule.args;
  for (api::FunctionArg& arg : rule.args) {
    if (!HasNames(arg)) continue;
    const std::string what = "argument \"" + arg.name + "\"";
    const auto place = types.members.find(AskedPath(before, arg));
    if (place == types.members.end())
      return what + " has the path \"" + arg.path +
             "\", which begins at nothing that its debug information has";
    const MemberPlace& found = place->second;
    if (!found.instead.empty())
      return what + " has the path \"" + arg.path + "\": write " + found.instead + ", since \"" +
             found.instead.substr(0, found.instead.find_first_of(".-")) + "\" is " +
             (found.instead.find('.') == std::string::npos ? "a" : "no") +
             " pointer in its debug information";
    if (!found.unknown.empty())
      return what + " has the path \"" + arg.path +
             "\", and its debug information has no member \"" + found.unknown + "\" there";
    const bool is_memory = api::SizeOf(arg.type) == 0;
    if (found.type && !Fits(arg.type, *found.type) && arg.path[0] != '&')
      return Differs(what + " (\"" + arg.path + "\")", arg.type, *found.type);
    if (!found.type && !(found.is_array && is_memory) && arg.path[0] != '&')
      return what + " (\"" + arg.path + "\") is " + std::string(api::NameOf(arg.type)) +
             " in the Trace, and " + (found.is_array ? "an array" : "no scalar") +
             " in the debug information";
    const bool is_address = arg.path[0] == '&' || (found.is_array && is_memory);
    const size_t begin = arg.path[0] == '&' ? 1 : 0;
    const std::string base = arg.path.substr(begin, arg.path.find("->") - begin);
    arg.path = (is_address ? "&" : "") + base + "->" + found.steps;
  }
  return "";
}

std::vector<api::FunctionArg> RawRegisters(bool is_go) {
  const std::vector<const char*> of_c{"rdi", "rsi", "rdx", "rcx", "r8", "r9"};
  const std::vector<const char*> of_go{"rax", "rbx", "rcx", "rdi", "rsi", "r8", "r9", "r10", "r11"};
  std::vector<api::FunctionArg> args;
  for (const char* name : is_go ? of_go : of_c)
    args.push_back({.name = name, .type = ValueType::kPointer});
  return args;
}

}  // namespace weft::hooks
