// SPDX-License-Identifier: Apache-2.0
// Diagnostics as text.
#include "lib/api/diagnostic.h"

#include <cstddef>

namespace weft::api {
namespace {

constexpr std::size_t kQuotedBytes = 60;

bool IsPlain(char c) { return c >= ' ' && c <= '~'; }

void AppendEscaped(std::string& out, char c) {
  static constexpr char kHex[] = "0123456789abcdef";
  const auto byte = static_cast<unsigned char>(c);
  out += "\\x";
  out += kHex[byte >> 4];
  out += kHex[byte & 15];
}

// Messages and paths are ours but for what they quote; this is the net below them.
void AppendSafe(std::string& out, std::string_view text) {
  for (const char c : text) {
    if (c == '\x7f' || static_cast<unsigned char>(c) < ' ') {
      AppendEscaped(out, c);
    } else {
      out += c;
    }
  }
}

}  // namespace

std::string Quote(std::string_view text) {
  std::string out = "\"";
  for (const char c : text.substr(0, kQuotedBytes)) {
    if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (IsPlain(c)) {
      out += c;
    } else {
      AppendEscaped(out, c);
    }
  }
  out += text.size() > kQuotedBytes ? "...\"" : "\"";
  return out;
}

std::string Diagnostic::ToString() const {
  std::string out;
  AppendSafe(out, file);
  if (line > 0) {
    if (!out.empty()) out += ':';
    out += std::to_string(line) + ':' + std::to_string(column);
  }
  for (const std::string* part : {&path, &message}) {
    if (part->empty()) continue;
    if (!out.empty()) out += ": ";
    AppendSafe(out, *part);
  }
  return out;
}

std::string ToString(const Diagnostics& diagnostics) {
  std::string out;
  for (const Diagnostic& diagnostic : diagnostics) out += diagnostic.ToString() + '\n';
  return out;
}

}  // namespace weft::api
