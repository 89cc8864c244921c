// SPDX-License-Identifier: Apache-2.0
#include "cli/view_json.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cinttypes>
#include <cmath>
#include <cstdio>
#include <ctime>
#include <span>
#include <vector>

#include "lib/ctf/decoder.h"
#include "lib/ctf/text.h"

namespace weft::cli {
namespace {

using ctf::ItemKind;
using ctf::Member;
using ctf::Role;
using ctf::Scope;
using ctf::Type;
using ctf::TypeKind;

template <typename... Args>
void AppendFormat(std::string& out, const char* format, Args... args) {
  std::array<char, 16> text;
  const int n = std::snprintf(text.data(), text.size(), format, args...);
  if (n > 0) out.append(text.data(), std::min(static_cast<size_t>(n), text.size() - 1));
}

// A string. What is no UTF-8 in it, as names may have it, becomes "\xNN".
void AppendString(std::string& out, std::string_view text) {
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

void AppendBytes(std::string& out, std::span<const uint8_t> bytes) {
  out += '[';
  for (size_t i = 0; i < bytes.size(); i++) {
    if (i > 0) out += ',';
    out += std::to_string(bytes[i]);
  }
  out += ']';
}

// A text that a program recorded: its bytes where it is no UTF-8, so that none is lost.
void AppendText(std::string& out, std::string_view text) {
  if (ctf::IsUtf8(text)) return AppendString(out, text);
  AppendBytes(out, {reinterpret_cast<const uint8_t*>(text.data()), text.size()});
}

// The time as ISO 8601 in UTC.
void AppendIsoTime(std::string& out, int64_t ns) {
  constexpr int64_t kSecond = 1'000'000'000;
  if (ns == ctf::kNoTime) {
    out += "null";
    return;
  }
  std::time_t seconds = ns / kSecond;
  int64_t rest = ns % kSecond;
  if (rest < 0) {
    rest += kSecond;
    seconds--;
  }
  std::tm tm{};
  std::array<char, 64> text;
  if (::gmtime_r(&seconds, &tm) == nullptr) return AppendString(out, "");
  std::snprintf(text.data(), text.size(), "\"%04d-%02d-%02dT%02d:%02d:%02d.%09" PRId64 "Z\"",
                tm.tm_year + 1900, tm.tm_mon + 1, tm.tm_mday, tm.tm_hour, tm.tm_min, tm.tm_sec,
                rest);
  out += text.data();
}

void AppendNanoseconds(std::string& out, int64_t ns) {
  out += ns == ctf::kNoTime ? "null" : std::to_string(ns);
}

void AppendNumber(std::string& out, const Type& type, uint64_t value) {
  out += type.is_signed ? std::to_string(static_cast<int64_t>(value)) : std::to_string(value);
}

class JsonPrinter final : public ctf::Visitor {
 public:
  explicit JsonPrinter(std::string& out) : out_(out) {}

  void Integer(const Type& type, uint64_t value) override {
    if (Hidden(type)) return;
    if (type.kind != TypeKind::kEnum) return AppendNumber(out_, type, value);
    out_ += "{\"value\":";
    AppendNumber(out_, type, value);
    out_ += ",\"labels\":[";
    bool any = false;
    ctf::ForEachLabel(type, value, [&](const std::string& label) {
      if (any) out_ += ",";
      any = true;
      AppendString(out_, label);
    });
    out_ += "]}";
  }
  void Float(const Type&, double value) override {
    if (!std::isfinite(value)) {
      out_ += "null";  // JSON has no such number
      return;
    }
    std::array<char, 32> text;
    const auto end = std::to_chars(text.data(), text.data() + text.size(), value).ptr;
    out_.append(text.data(), end);
  }
  void Bool(const Type& type, bool value) override {
    if (!Hidden(type)) out_ += value ? "true" : "false";
  }
  void BitMap(const Type& type, uint64_t value) override {
    if (Hidden(type)) return;
    if (type.mappings.empty()) return AppendNumber(out_, type, value);
    out_ += "{\"value\":" + std::to_string(value) + ",\"labels\":[";
    bool any = false;
    ctf::ForEachFlag(type, value, [&](const std::string& label) {
      if (any) out_ += ",";
      any = true;
      AppendString(out_, label);
    });
    out_ += "]}";
  }
  void Text(const Type&, std::string_view text) override { AppendText(out_, text); }
  void Blob(const Type& type, std::span<const uint8_t> bytes) override {
    if (!Hidden(type)) AppendBytes(out_, bytes);
  }
  void NoOption(const Type&) override { out_ += "null"; }
  void BeginStruct(const Type&) override {
    out_ += "{";
    members_.push_back(0);
  }
  void BeginMember(const Type&, const Member& member) override {
    if (Hidden(member.type)) return;
    if (members_.back()++ > 0) out_ += ",";
    AppendString(out_, member.name);
    out_ += ":";
  }
  void EndStruct(const Type&) override {
    out_ += "}";
    members_.pop_back();
  }
  void BeginArray(const Type&, uint64_t) override { out_ += "["; }
  void BeginElement(const Type&, uint64_t index) override {
    if (index > 0) out_ += ",";
  }
  void EndArray(const Type&) override { out_ += "]"; }

 private:
  static bool Hidden(const Type& type) {
    return (type.role != Role::kNone || type.clocked) && type.saved == ctf::kNotSaved;
  }

  std::string& out_;
  std::vector<int> members_;
};

void AppendEvent(ctf::StreamReader& stream, std::string& out) {
  const ctf::Item& item = stream.item();
  out += "{\"time\":";
  AppendIsoTime(out, item.time_ns);
  out += ",\"time_ns\":";
  AppendNanoseconds(out, item.time_ns);
  if (const std::string* host = stream.trace().EnvText("hostname")) {
    out += ",\"hostname\":";
    AppendString(out, *host);
  }
  out += ",\"event\":";
  AppendString(out, item.event->name);
  JsonPrinter printer(out);
  const auto part = [&](const char* name, Scope scope, const std::optional<Type>& type) {
    if (!type) return;
    out += name;
    (void)stream.Visit(scope, printer);
  };
  part(",\"packet\":", Scope::kPacketContext, stream.stream()->packet_context);
  part(",\"context\":", Scope::kStreamContext, stream.stream()->event_context);
  part(",\"event_context\":", Scope::kEventContext, item.event->context);
  part(",\"payload\":", Scope::kPayload, item.event->payload);
  out += "}\n";
}

}  // namespace

void AppendJson(ctf::StreamReader& stream, std::string& out) {
  const ctf::Item& item = stream.item();
  if (item.kind == ItemKind::kEvent) return AppendEvent(stream, out);
  out += item.kind == ItemKind::kDiscardedEvents ? "{\"discarded_events\":"
                                                 : "{\"discarded_packets\":";
  out += item.count ? std::to_string(*item.count) : "null";
  out += ",\"begin_ns\":";
  AppendNanoseconds(out, item.time_ns);
  out += ",\"end_ns\":";
  AppendNanoseconds(out, item.end_ns);
  out += ",\"stream\":";
  AppendString(out, stream.file());
  out += "}\n";
}

}  // namespace weft::cli
