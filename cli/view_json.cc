// SPDX-License-Identifier: Apache-2.0
#include "cli/view_json.h"

#include <array>
#include <charconv>
#include <cinttypes>
#include <cmath>
#include <cstdio>
#include <ctime>
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

void AppendString(std::string& out, std::string_view text) {
  std::string valid(text);
  valid.resize(ctf::MakeTextValid(reinterpret_cast<uint8_t*>(valid.data()), valid.size()));
  out += '"';
  for (const char c : valid) {
    const auto byte = static_cast<uint8_t>(c);
    if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (byte < 0x20 || byte == 0x7f) {
      std::array<char, 8> escape;
      std::snprintf(escape.data(), escape.size(), "\\u%04x", byte);
      out += escape.data();
    } else {
      out += c;
    }
  }
  out += '"';
}

// The time as ISO 8601 in UTC.
void AppendIsoTime(std::string& out, int64_t ns) {
  constexpr int64_t kSecond = 1'000'000'000;
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

void AppendNumber(std::string& out, const Type& type, uint64_t value) {
  out += type.is_signed ? std::to_string(static_cast<int64_t>(value)) : std::to_string(value);
}

class JsonPrinter : public ctf::Visitor {
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
  void Text(const Type&, std::string_view text) override { AppendString(out_, text); }
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
  out += ",\"time_ns\":" + std::to_string(item.time_ns);
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
  out += ",\"begin_ns\":" + std::to_string(item.time_ns) +
         ",\"end_ns\":" + std::to_string(item.end_ns) + ",\"stream\":";
  AppendString(out, stream.file());
  out += "}\n";
}

}  // namespace weft::cli
