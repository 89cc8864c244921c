// SPDX-License-Identifier: Apache-2.0
#include "cli/view_text.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cinttypes>
#include <cstdio>
#include <ctime>
#include <span>
#include <vector>

#include "lib/ctf/decoder.h"
#include "lib/ctf/text.h"

namespace weft::cli {
namespace {

using ctf::Member;
using ctf::Role;
using ctf::Scope;
using ctf::Type;
using ctf::TypeKind;

constexpr const char* kReset = "\033[0m";
constexpr const char* kBold = "\033[1m";
constexpr const char* kFieldName = "\033[36m";
constexpr const char* kTime = "\033[1m\033[1m\033[33m";
constexpr const char* kEventName = "\033[1m\033[1m\033[35m";
constexpr const char* kUnknown = "\033[1m\033[1m\033[31m";

constexpr int64_t kNsPerSecond = 1'000'000'000;

template <typename... Args>
void AppendFormat(std::string& out, const char* format, Args... args) {
  std::array<char, 128> text;
  const int n = std::snprintf(text.data(), text.size(), format, args...);
  if (n > 0) out.append(text.data(), std::min(static_cast<size_t>(n), text.size() - 1));
}

// What the format uses itself is not shown, unless a field needs it.
bool IsHidden(const Type& type) {
  return (type.role != Role::kNone || type.clocked) && type.saved == ctf::kNotSaved;
}

// Bytes of the character that `text` begins with, if a terminal may have it as it is; 0: it is a
// control character or no UTF-8, and its first byte is shown as a number.
size_t PlainLength(std::string_view text) {
  const auto byte = static_cast<uint8_t>(text[0]);
  if (byte < 0x20 || byte == 0x7f) return 0;
  const size_t length = ctf::Utf8Length(text);
  const bool c1 = length == 2 && byte == 0xc2 && static_cast<uint8_t>(text[1]) < 0xa0;
  return c1 ? 0 : length;
}

void AppendQuoted(std::string& out, std::string_view text) {
  static constexpr std::string_view kPlain = "\\'\"?";
  static constexpr std::string_view kControl = "\a\b\033\f\n\r\t\v";
  static constexpr std::string_view kLetters = "abefnrtv";
  out += '"';
  for (size_t at = 0; at < text.size();) {
    const char c = text[at];
    const auto byte = static_cast<uint8_t>(c);
    const size_t length = PlainLength(text.substr(at));
    at += std::max<size_t>(length, 1);
    if (kPlain.find(c) != std::string_view::npos) {
      out += '\\';
      out += c;
    } else if (length > 0) {
      out += text.substr(at - length, length);
    } else if (const size_t control = kControl.find(c); control != std::string_view::npos) {
      out += '\\';
      out += kLetters[control];
    } else {
      AppendFormat(out, "\\x%02x", byte);
    }
  }
  out += '"';
}

void AppendInteger(std::string& out, const Type& type, uint64_t value) {
  const uint32_t bits = type.bits;
  if (type.base == 2) {
    out += "0b";
    for (uint32_t i = bits; i-- > 0;) out += ((value >> i) & 1) != 0 ? '1' : '0';
  } else if (type.base == 8) {
    const uint32_t rounded = ((bits - 1) / 3 + 1) * 3;
    if (type.is_signed && rounded < 64) value &= (uint64_t{1} << rounded) - 1;
    AppendFormat(out, "0%" PRIo64, value);
  } else if (type.base == 16) {
    const uint32_t rounded = (bits + 3) & ~3U;
    if (rounded < 64) value &= (uint64_t{1} << rounded) - 1;
    AppendFormat(out, "0x%" PRIX64, value);
  } else if (type.is_signed) {
    AppendFormat(out, "%" PRId64, static_cast<int64_t>(value));
  } else {
    AppendFormat(out, "%" PRIu64, value);
  }
}

class FieldPrinter : public ctf::Visitor {
 public:
  FieldPrinter(std::string& out, bool color) : out_(out), color_(color) {}

  void Integer(const Type& type, uint64_t value) override {
    if (IsHidden(type)) return;
    if (type.kind == TypeKind::kEnum) {
      Enum(type, value);
    } else {
      Colored(kBold, [&] { AppendInteger(out_, type, value); });
    }
  }
  void Float(const Type&, double value) override {
    Colored(kBold, [&] { AppendFormat(out_, "%g", value); });
  }
  void Bool(const Type& type, bool value) override {
    if (!IsHidden(type)) Colored(kBold, [&] { out_ += value ? "true" : "false"; });
  }
  void BitMap(const Type& type, uint64_t value) override {
    if (IsHidden(type)) return;
    Colored(kBold, [&] { AppendFormat(out_, "0x%" PRIX64, value); });
    bool any = false;
    ctf::ForEachFlag(type, value, [&](const std::string& label) {
      out_ += any ? ", " : " { ";
      any = true;
      Colored(kBold, [&] { AppendQuoted(out_, label); });
    });
    if (any) out_ += " }";
  }
  void Text(const Type&, std::string_view text) override {
    Colored(kBold, [&] { AppendQuoted(out_, text); });
  }
  void Blob(const Type& type, std::span<const uint8_t> bytes) override {
    if (IsHidden(type)) return;
    out_ += "{ ";
    Colored(kBold, [&] {
      for (const uint8_t byte : bytes) AppendFormat(out_, "%02x ", byte);
    });
    out_ += "}";
  }
  void BeginOption(const Type&) override { out_ += "{ "; }
  void EndOption(const Type&) override { out_ += " }"; }
  void NoOption(const Type&) override { out_ += "<none>"; }
  void BeginStruct(const Type&) override {
    out_ += "{";
    printed_.push_back(0);
  }
  void BeginMember(const Type&, const Member& member) override {
    if (IsHidden(member.type)) return;
    out_ += printed_.back()++ > 0 ? ", " : " ";
    Colored(kFieldName, [&] { AppendName(out_, member.name); });
    out_ += " = ";
  }
  void EndStruct(const Type&) override {
    out_ += " }";
    printed_.pop_back();
  }
  void BeginVariant(const Type&, const Member&) override { out_ += "{ "; }
  void EndVariant(const Type&) override { out_ += " }"; }
  void BeginArray(const Type&, uint64_t) override { out_ += "["; }
  void BeginElement(const Type&, uint64_t index) override {
    AppendFormat(out_, index > 0 ? ", [%" PRIu64 "] = " : " [%" PRIu64 "] = ", index);
  }
  void EndArray(const Type&) override { out_ += " ]"; }

 private:
  template <typename Print>
  void Colored(const char* color, Print print) {
    if (color_) out_ += color;
    print();
    if (color_) out_ += kReset;
  }

  void Enum(const Type& type, uint64_t value) {
    out_ += "( ";
    bool any = false;
    ctf::ForEachLabel(type, value, [&](const std::string& label) {
      if (any) out_ += ", ";
      any = true;
      Colored(kBold, [&] { AppendQuoted(out_, label); });
    });
    if (!any) Colored(kUnknown, [&] { out_ += "<unknown>"; });
    out_ += " : container = ";
    Colored(kBold, [&] { AppendInteger(out_, type, value); });
    out_ += " )";
  }

  std::string& out_;
  bool color_;
  std::vector<int> printed_;  // members so far, per open structure
};

bool HasVisible(const Type& type) {
  for (const Member& member : type.members) {
    if (!IsHidden(member.type)) return true;
  }
  return type.members.empty();
}

// "host:program:(vpid) ", of what the environment has.
void AppendOrigin(std::string& out, const ctf::TraceClass& trace) {
  const size_t before = out.size();
  for (const char* name : {"hostname", "procname"}) {
    if (const std::string* text = trace.EnvText(name)) {
      if (out.size() > before) out += ":";
      AppendName(out, *text);
    }
  }
  for (const ctf::EnvEntry& entry : trace.env) {
    const auto* vpid = std::get_if<int64_t>(&entry.value);
    if (entry.name != "vpid" || vpid == nullptr) continue;
    if (out.size() > before) out += ":";
    AppendFormat(out, "(%" PRId64 ")", *vpid);
  }
  if (out.size() > before) out += " ";
}

}  // namespace

void AppendName(std::string& out, std::string_view name) {
  while (!name.empty()) {
    const size_t length = PlainLength(name);
    if (length == 0) {
      AppendFormat(out, "\\x%02x", static_cast<uint8_t>(name[0]));
    } else {
      out += name.substr(0, length);
    }
    name.remove_prefix(std::max<size_t>(length, 1));
  }
}

void AppendTime(std::string& out, int64_t ns) {
  const std::time_t seconds = ns / kNsPerSecond;
  std::tm tm{};
  if (ns < 0 || ::localtime_r(&seconds, &tm) == nullptr) {
    const auto absolute = static_cast<uint64_t>(ns < 0 ? -ns : ns);
    AppendFormat(out, "%s%" PRIu64 ".%09" PRIu64, ns < 0 ? "-" : "", absolute / kNsPerSecond,
                 absolute % kNsPerSecond);
    return;
  }
  AppendFormat(out, "%02d:%02d:%02d.%09" PRId64, tm.tm_hour, tm.tm_min, tm.tm_sec,
               ns % kNsPerSecond);
}

// "[10:33:30.209430347] (+0.000000010) "
void TextPrinter::Time(int64_t ns, std::string& out) {
  out += "[";
  if (color_) out += kTime;
  AppendTime(out, ns);
  if (color_) out += kReset;
  out += "] (";
  if (last_ns_) {
    // Times of a damaged stream may go back (lib/ctf/time_order.h). The difference of two int64
    // fits into uint64.
    const bool back = ns < *last_ns_;
    const uint64_t delta = back ? static_cast<uint64_t>(*last_ns_) - static_cast<uint64_t>(ns)
                                : static_cast<uint64_t>(ns) - static_cast<uint64_t>(*last_ns_);
    AppendFormat(out, "%s%" PRIu64 ".%09" PRIu64, back ? "-" : "+", delta / kNsPerSecond,
                 delta % kNsPerSecond);
  } else {
    out += "+?.?????????";
  }
  last_ns_ = ns;
  out += ") ";
}

void TextPrinter::Event(ctf::StreamReader& stream, std::string& out) {
  const ctf::Item& item = stream.item();
  if (item.time_ns != ctf::kNoTime) Time(item.time_ns, out);
  AppendOrigin(out, stream.trace());
  if (color_) out += kEventName;
  AppendName(out, item.event->name);
  if (color_) out += kReset;
  out += ": ";
  FieldPrinter printer(out, color_);
  bool first = true;
  const auto part = [&](Scope scope, const std::optional<Type>& type) {
    if (!type || !HasVisible(*type)) return;
    if (!first) out += ", ";
    first = false;
    (void)stream.Visit(scope, printer);
  };
  part(Scope::kPacketContext, stream.stream()->packet_context);
  part(Scope::kStreamContext, stream.stream()->event_context);
  part(Scope::kEventContext, item.event->context);
  part(Scope::kPayload, item.event->payload);
  out += "\n";
}

std::string TextPrinter::Discarded(const ctf::StreamReader& stream) {
  const ctf::Item& item = stream.item();
  const bool events = item.kind == ctf::ItemKind::kDiscardedEvents;
  const std::string what = events ? "event" : "packet";
  std::string out = "WARNING: Tracer ";
  if (item.count) {
    out += "discarded " + std::to_string(*item.count) + " " + what + (*item.count == 1 ? "" : "s");
  } else {
    out += "may have discarded " + what + "s";
  }
  if (item.time_ns == ctf::kNoTime || item.end_ns == ctf::kNoTime) {
    out += " (unknown time range)";
  } else {
    out += " between [";
    AppendTime(out, item.time_ns);
    out += "] and [";
    AppendTime(out, item.end_ns);
    out += "]";
  }
  return out + " in stream \"" + stream.file() +
         "\" (stream class ID: " + std::to_string(stream.stream()->id) +
         ", stream ID: " + std::to_string(stream.instance_id()) + ").";
}

}  // namespace weft::cli
