// SPDX-License-Identifier: Apache-2.0
// See cpp_names.h. Itanium C++ ABI, 5.1.
#include "node-agent/hooks/cpp_names.h"

#include <cxxabi.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <map>
#include <memory>

#include "lib/base/ascii.h"
#include "node-agent/hooks/limits.h"

namespace weft::hooks {
namespace {

// A symbol refers back to parts of itself (S1_, T_), and these may do so, too: 300 bytes can stand
// for a name of gigabytes. Returns whether the name is certainly not too long: references to one
// part add at most their number times the text that is there.
bool IsBounded(std::string_view symbol) {
  std::map<std::string_view, uint64_t> references;
  for (size_t at = 0; at < symbol.size(); ++at) {
    if (symbol[at] != 'S' && symbol[at] != 'T') continue;
    size_t end = at + 1;
    while (end < symbol.size() && (IsDigit(symbol[end]) || IsUpper(symbol[end]))) ++end;
    if (end == symbol.size() || symbol[end] != '_') continue;
    ++references[symbol.substr(at, end - at)];
    at = end;
  }
  uint64_t bound = symbol.size();
  for (const auto& [part, count] : references)
    if ((bound *= 1 + count) > kMaxCppNameBound) return false;
  return true;
}

std::string Demangle(const std::string& symbol) {
  if (!IsBounded(symbol)) return "";
  int status = 0;
  const std::unique_ptr<char, void (*)(void*)> text(
      abi::__cxa_demangle(symbol.c_str(), nullptr, nullptr, &status), std::free);
  return status == 0 && text ? std::string(text.get()) : std::string();
}

// "a::f<int>(int) const" without the arguments: the last parenthesis of the outermost level.
std::string WithoutArguments(const std::string& name) {
  int depth = 0;
  for (size_t i = name.size(); i > 0; --i) {
    if (name[i - 1] == ')') ++depth;
    if (name[i - 1] == '(' && --depth == 0) return name.substr(0, i - 1);
  }
  return name;
}

// Returns the name of a function without its return type. In the name of a string of a function,
// the function has none: "_ZZ...Es" is "a::f<int>(int)::string literal".
std::string WithoutReturnType(const std::string& symbol, const std::string& name) {
  constexpr std::string_view kString = "::string literal";
  // Only names of templates have one. _ZT and _ZG are no functions, or thunks.
  if (name.find('<') == std::string::npos || symbol.size() < 3 || symbol[2] == 'T' ||
      symbol[2] == 'G')
    return name;
  // Copies that a compiler made: "f(int) [clone .isra.0]".
  const size_t copy = std::min(symbol.find('.'), symbol.size());
  std::string bare = Demangle("_ZZ" + symbol.substr(2, copy - 2) + "Es");
  if (!bare.ends_with(kString)) return name;
  bare.resize(bare.size() - kString.size());
  if (const size_t clone = name.find(" [clone "); copy < symbol.size() && clone < name.size())
    bare += name.substr(clone);
  return bare;
}

// Returns the end of the type that begins at `at`, without what makes it a pointer or a reference;
// npos: it has no end, or no name.
size_t EndOfType(std::string_view text, size_t at) {
  int depth = 0;
  const size_t begin = at;
  for (; at < text.size(); ++at) {
    const char c = text[at];
    if (depth == 0 && std::string_view("*&,()>[").find(c) != std::string_view::npos) break;
    if (c == '<') ++depth;
    if (c == '>') --depth;
  }
  const bool is_whole = depth == 0 && at > begin && (IsWord(text[at - 1]) || text[at - 1] == '>');
  return is_whole ? at : std::string_view::npos;
}

}  // namespace

std::vector<std::string> CppNames(const std::string& symbol) {
  if (!symbol.starts_with("_Z")) return {};
  const std::string name = Demangle(symbol);
  if (name.empty()) return {};
  const std::string bare = WithoutReturnType(symbol, name);
  std::vector<std::string> names{bare, WithoutArguments(bare)};
  if (name != bare) names.insert(names.end(), {name, WithoutArguments(name)});
  return names;
}

std::string SpellName(std::string_view name) {
  std::string spelled;
  bool is_apart = false;
  for (const char c : name) {
    if (c == ' ') {
      is_apart = true;
      continue;
    }
    // A "*" may be a wildcard, which has no space of its own.
    const char before = spelled.empty() ? ' ' : spelled.back();
    const bool ends = before == '>' || before == ')' || before == '&';
    if (IsWord(c) && (ends || (is_apart && IsWord(before)))) spelled += ' ';
    is_apart = false;
    spelled += c;
    if (c == ',') spelled += ' ';
  }
  return spelled;
}

std::string SpellPattern(std::string_view pattern) {
  constexpr std::string_view kConst = "const ";
  std::string spelled = SpellName(pattern);
  // The last first: inner types are then spelled.
  for (size_t at = spelled.rfind(kConst); at != std::string::npos && at > 0;
       at = spelled.rfind(kConst, at - 1)) {
    const bool is_first = spelled[at - 1] == '(' || spelled[at - 1] == '<' ||
                          (spelled[at - 1] == ' ' && at > 1 && spelled[at - 2] == ',');
    const size_t end = EndOfType(spelled, at + kConst.size());
    if (!is_first || end == std::string::npos) continue;
    spelled.insert(end, " const");
    spelled.erase(at, kConst.size());
  }
  return spelled;
}

}  // namespace weft::hooks
