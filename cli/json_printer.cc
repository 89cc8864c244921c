// SPDX-License-Identifier: Apache-2.0
#include "cli/json_printer.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <concepts>
#include <cstdio>

#include "lib/ctf/text.h"

namespace weft::cli {
namespace {

using ctf::Member;
using ctf::Type;
using ctf::TypeKind;

void AppendFormat(std::string& out, const char* format, unsigned value) {
  std::array<char, 16> text;
  const int n = std::snprintf(text.data(), text.size(), format, value);
  if (n > 0) out.append(text.data(), std::min(static_cast<size_t>(n), text.size() - 1));
}

void AppendDecimal(std::string& out, std::integral auto value) {
  std::array<char, 24> text;
  out.append(text.data(), std::to_chars(text.data(), text.data() + text.size(), value).ptr);
}

void AppendNumber(std::string& out, const Type& type, uint64_t value) {
  if (type.is_signed) {
    AppendDecimal(out, static_cast<int64_t>(value));
  } else {
    AppendDecimal(out, value);
  }
}

void AppendBytes(std::string& out, std::span<const uint8_t> bytes) {
  out += '[';
  for (size_t i = 0; i < bytes.size(); i++) {
    if (i > 0) out += ',';
    AppendDecimal(out, bytes[i]);
  }
  out += ']';
}

// {"value":VALUE,"labels":[...]}: `value` was appended already; the labels come from
// each(on_label).
template <typename Each>
void AppendLabels(std::string& out, Each each) {
  out += ",\"labels\":[";
  bool any = false;
  each([&](const std::string& label) {
    if (any) out += ",";
    any = true;
    AppendJsonString(out, label);
  });
  out += "]}";
}

}  // namespace

void AppendJsonString(std::string& out, std::string_view text) {
  out += '"';
  for (size_t at = 0; at < text.size();) {
    const auto byte = static_cast<uint8_t>(text[at]);
    const size_t length = ctf::Utf8Length(text.substr(at));
    if (length == 0) {
      AppendFormat(out, "\\\\x%02x", byte);
    } else if (byte == '"' || byte == '\\') {
      out += '\\';
      out += text[at];
    } else if (byte < 0x20 || byte == 0x7f) {
      AppendFormat(out, "\\u%04x", byte);
    } else {
      out += text.substr(at, length);
    }
    at += std::max<size_t>(length, 1);
  }
  out += '"';
}

void JsonPrinter::Integer(const Type& type, uint64_t value) {
  if (ctf::IsInternal(type)) return;
  if (type.kind != TypeKind::kEnum) return AppendNumber(out_, type, value);
  out_ += "{\"value\":";
  AppendNumber(out_, type, value);
  AppendLabels(out_, [&](auto on_label) { ctf::ForEachLabel(type, value, on_label); });
}

void JsonPrinter::Float(const Type&, double value) {
  if (!std::isfinite(value)) {
    out_ += "null";  // JSON has no such number
    return;
  }
  std::array<char, 32> text;
  out_.append(text.data(), std::to_chars(text.data(), text.data() + text.size(), value).ptr);
}

void JsonPrinter::Bool(const Type& type, bool value) {
  if (!ctf::IsInternal(type)) out_ += value ? "true" : "false";
}

void JsonPrinter::BitMap(const Type& type, uint64_t value) {
  if (ctf::IsInternal(type)) return;
  if (type.mappings.empty()) return AppendNumber(out_, type, value);
  out_ += "{\"value\":";
  AppendDecimal(out_, value);
  AppendLabels(out_, [&](auto on_label) { ctf::ForEachFlag(type, value, on_label); });
}

// A text that a program recorded: its bytes where it is no UTF-8, so that none is lost.
void JsonPrinter::Text(const Type&, std::string_view text) {
  if (ctf::IsUtf8(text)) return AppendJsonString(out_, text);
  AppendBytes(out_, {reinterpret_cast<const uint8_t*>(text.data()), text.size()});
}

void JsonPrinter::Blob(const Type& type, std::span<const uint8_t> bytes) {
  if (!ctf::IsInternal(type)) AppendBytes(out_, bytes);
}

void JsonPrinter::NoOption(const Type&) { out_ += "null"; }

void JsonPrinter::BeginStruct(const Type&) {
  out_ += "{";
  members_.push_back(0);
}

void JsonPrinter::BeginMember(const Type&, const Member& member) {
  if (ctf::IsInternal(member.type)) return;
  if (members_.back()++ > 0) out_ += ",";
  AppendJsonString(out_, member.name);
  out_ += ":";
}

void JsonPrinter::EndStruct(const Type&) {
  out_ += "}";
  members_.pop_back();
}

void JsonPrinter::BeginArray(const Type&, uint64_t) { out_ += "["; }

void JsonPrinter::BeginElement(const Type&, uint64_t index) {
  if (index > 0) out_ += ",";
}

void JsonPrinter::EndArray(const Type&) { out_ += "]"; }

}  // namespace weft::cli
