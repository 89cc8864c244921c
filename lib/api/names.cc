// SPDX-License-Identifier: Apache-2.0
// Checks of single strings. Source for names and labels: apimachinery's util/validation.
#include "lib/api/names.h"

#include <algorithm>
#include <cstddef>

#include "lib/api/diagnostic.h"
#include "lib/api/limits.h"
#include "lib/base/ascii.h"

namespace weft::api {
namespace {

bool IsAlnum(char c) { return IsDigit(c) || IsLetter(c); }

// Is it one dot-separated part of a name?
bool IsDnsPart(std::string_view part) {
  const auto edge = [](char c) { return IsLower(c) || IsDigit(c); };
  return !part.empty() && edge(part.front()) && edge(part.back()) &&
         std::ranges::all_of(part, [&](char c) { return edge(c) || c == '-'; });
}

std::string TooLong(std::size_t limit) {
  return "must be at most " + std::to_string(limit) + " bytes long";
}

std::string CheckSubdomain(std::string_view text, std::size_t limit) {
  if (text.size() > limit) return TooLong(limit);
  std::string_view rest = text;
  for (;;) {
    const std::size_t dot = rest.find('.');
    if (!IsDnsPart(rest.substr(0, dot)))
      return "must be lower-case letters, digits, - and ., each part beginning and ending with a "
             "letter or digit";
    if (dot == std::string_view::npos) return "";
    rest.remove_prefix(dot + 1);
  }
}

// Is it the name part of a label's key, or its value?
bool IsQualifiedName(std::string_view text) {
  return !text.empty() && text.size() <= limits::kLabelValue && IsAlnum(text.front()) &&
         IsAlnum(text.back()) && std::ranges::all_of(text, [](char c) {
           return IsAlnum(c) || c == '-' || c == '_' || c == '.';
         });
}

bool IsControl(char c) { return static_cast<unsigned char>(c) < ' ' || c == '\x7f'; }

// Returns the bytes of the well-formed UTF-8 sequence at the front of `text` (RFC 3629), 0 if there
// is none.
std::size_t Utf8Length(std::string_view text) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned first = byte(0);
  if (first < 0x80) return 1;
  const std::size_t length = first >= 0xc2 && first < 0xe0   ? 2
                             : first >= 0xe0 && first < 0xf0 ? 3
                             : first >= 0xf0 && first < 0xf5 ? 4
                                                             : 0;
  if (length == 0 || text.size() < length) return 0;
  for (std::size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xc0) != 0x80) return 0;
  }
  const unsigned second = byte(1);
  const bool overlong = (first == 0xe0 && second < 0xa0) || (first == 0xf0 && second < 0x90);
  const bool surrogate = first == 0xed && second >= 0xa0;
  const bool too_large = first == 0xf4 && second >= 0x90;
  return overlong || surrogate || too_large ? 0 : length;
}

bool IsUtf8(std::string_view text) {
  while (!text.empty()) {
    const std::size_t length = Utf8Length(text);
    if (length == 0) return false;
    text.remove_prefix(length);
  }
  return true;
}

bool IsPatternChar(char c) {
  return IsAlnum(c) || c == '_' || c == '.' || c == '$' || c == '-' || c == '*';
}

// Reports the first character that is neither a pattern's nor in `more`.
std::string CheckPatternChars(std::string_view text, std::string_view more) {
  if (text.empty()) return "must not be empty";
  for (const char c : text) {
    if (IsPatternChar(c) || more.find(c) != std::string_view::npos) continue;
    if (c == '?' || c == '[')
      return "only * is special in a pattern, " + Quote({&c, 1}) + " is not";
    return "must not contain " + Quote({&c, 1});
  }
  return "";
}

}  // namespace

std::string CheckTraceCount(std::size_t others, std::size_t most) {
  if (others < most) return "";
  return "the namespace has as many Traces as it may have, " + std::to_string(most) +
         ", also counting those that are over: delete some, or ask an administrator for more (the "
         "chart's value traces.perNamespace)";
}

std::string CheckDnsLabel(std::string_view text) {
  if (text.size() > limits::kDnsLabel) return TooLong(limits::kDnsLabel);
  if (IsDnsPart(text)) return "";
  return "must be lower-case letters, digits and -, beginning and ending with a letter or digit";
}

std::string CheckDnsSubdomain(std::string_view text) {
  return CheckSubdomain(text, limits::kDnsSubdomain);
}

std::string CheckTraceName(std::string_view text) {
  return CheckSubdomain(text, limits::kTraceName);
}

std::string CheckLabelKey(std::string_view text) {
  const std::size_t slash = text.find('/');
  const bool prefixed = slash != std::string_view::npos;
  if (prefixed && !CheckDnsSubdomain(text.substr(0, slash)).empty())
    return "must have a DNS name before the /";
  if (IsQualifiedName(prefixed ? text.substr(slash + 1) : text)) return "";
  return "must be 1 to 63 letters, digits, -, _ and ., beginning and ending with a letter or "
         "digit, with a DNS name and a / before them or not";
}

std::string CheckLabelValue(std::string_view text) {
  if (text.empty() || IsQualifiedName(text)) return "";
  return "must be at most 63 letters, digits, -, _ and ., beginning and ending with a letter or "
         "digit";
}

std::string CheckEventPattern(std::string_view text) {
  if (std::string problem = CheckPatternChars(text, ":"); !problem.empty()) return problem;
  if (text.size() > limits::kEventName) return TooLong(limits::kEventName);
  const auto colons = std::ranges::count(text, ':');
  if (colons > 1) return "has more than one colon, but events are named provider:event";
  if (colons == 0 && text.find('*') == std::string_view::npos)
    return "matches no event: they are named provider:event, did you mean " +
           Quote(std::string(text) + ":*") + "?";
  if (text.front() == ':' || text.back() == ':')
    return "has nothing on one side of the colon, but events are named provider:event";
  return "";
}

std::string CheckKernelPattern(std::string_view text) {
  if (text.size() > limits::kEventName) return TooLong(limits::kEventName);
  return CheckPatternChars(text, "");
}

std::string CheckPrintablePattern(std::string_view text) {
  if (text.empty()) return "must not be empty";
  if (!IsUtf8(text)) return "must be UTF-8";
  if (std::ranges::any_of(text, IsControl)) return "must not have control characters in it";
  return "";
}

std::string CheckFilePath(std::string_view text) {
  if (!text.starts_with('/') || text.ends_with('/')) return "must be the absolute path of a file";
  if (std::string(text).append("/").find("/../") != std::string::npos)
    return "must not have .. in it";
  return CheckPrintablePattern(text);
}

std::string CheckUsdtName(std::string_view text) {
  const std::size_t colon = text.find(':');
  const auto bad = [](std::string_view part) {
    return part.empty() ||
           !std::ranges::all_of(part, [](char c) { return IsAlnum(c) || c == '_'; });
  };
  if (colon == std::string_view::npos || bad(text.substr(0, colon)) || bad(text.substr(colon + 1)))
    return "must be provider:name, of letters, digits and _";
  return "";
}

std::string CheckIdentifier(std::string_view text) {
  if (text.empty() || IsDigit(text.front()) ||
      !std::ranges::all_of(text, [](char c) { return IsAlnum(c) || c == '_'; }))
    return "must be letters, digits and _, not beginning with a digit";
  return "";
}

std::string CheckFilterText(std::string_view text) {
  const auto blank = [](char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r'; };
  if (std::ranges::all_of(text, blank)) return "must not be empty; leave it out to record all";
  if (!IsUtf8(text)) return "must be UTF-8";
  if (std::ranges::any_of(text, [&](char c) { return IsControl(c) && !blank(c); }))
    return "must not have control characters in it";
  return "";
}

std::string CheckTime(std::string_view text) {
  constexpr std::string_view kShape = "dddd-dd-ddTdd:dd:dd";
  constexpr const char* kBad = "must be a time such as 2026-01-02T03:04:05Z";
  if (text.size() < kShape.size() + 1) return kBad;
  for (std::size_t i = 0; i < kShape.size(); ++i) {
    if (kShape[i] == 'd' ? !IsDigit(text[i]) : kShape[i] != text[i]) return kBad;
  }
  text.remove_prefix(kShape.size());
  if (text.starts_with('.')) {
    const std::size_t end = text.find_first_not_of("0123456789", 1);
    if (end == 1 || end == std::string_view::npos) return kBad;
    text.remove_prefix(end);
  }
  const bool offset = text.size() == 6 && (text[0] == '+' || text[0] == '-') && IsDigit(text[1]) &&
                      IsDigit(text[2]) && text[3] == ':' && IsDigit(text[4]) && IsDigit(text[5]);
  return text == "Z" || offset ? "" : kBad;
}

std::string CheckUuid(std::string_view text) {
  constexpr std::string_view kForm = "xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx";
  constexpr std::string_view kBad = "must be a UUID in lower case";
  if (text.size() != kForm.size()) return std::string(kBad);
  for (std::size_t i = 0; i < text.size(); ++i) {
    const bool good =
        kForm[i] == '-' ? text[i] == '-' : std::string_view("0123456789abcdef").contains(text[i]);
    if (!good) return std::string(kBad);
  }
  return "";
}

std::string CheckAnyText(std::string_view text) { return IsUtf8(text) ? "" : "must be UTF-8"; }

}  // namespace weft::api
