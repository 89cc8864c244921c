// SPDX-License-Identifier: Apache-2.0
#include "cli/view_text.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cinttypes>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <span>
#include <vector>

#include "cli/append.h"
#include "lib/ctf/decoder.h"
#include "lib/ctf/text.h"

namespace weft::cli {
namespace {

using ctf::Member;
using ctf::Scope;
using ctf::Type;
using ctf::TypeKind;

constexpr std::string_view kReset = "\033[0m";
constexpr std::string_view kBold = "\033[1m";
constexpr std::string_view kFieldName = "\033[36m";
constexpr std::string_view kTime = "\033[1m\033[1m\033[33m";
constexpr std::string_view kEventName = "\033[1m\033[1m\033[35m";
constexpr std::string_view kUnknown = "\033[1m\033[1m\033[31m";

constexpr std::string_view kFunctionPrefix = "function:";
constexpr uint64_t kMaxIndent = 40;  // deeper calls are not shown further to the right

constexpr int64_t kNsPerSecond = 1'000'000'000;

uint64_t Magnitude(int64_t value) {
  return value < 0 ? -static_cast<uint64_t>(value) : static_cast<uint64_t>(value);
}

template <typename... Args>
void AppendFormat(std::string& out, const char* format, Args... args) {
  std::array<char, 128> text;
  const int n = std::snprintf(text.data(), text.size(), format, args...);
  if (n > 0) out.append(text.data(), std::min(static_cast<size_t>(n), text.size() - 1));
}

// The text of a number that is no decimal integer.
class NumberText {
 public:
  // As printf's "0x%lX".
  static NumberText Hexadecimal(uint64_t value) {
    NumberText text;
    text.text_[0] = '0';
    text.text_[1] = 'x';
    text.SetEnd(std::to_chars(text.begin() + 2, text.limit(), value, 16).ptr);
    for (size_t i = 2; i < text.end_; i++) {
      if (text.text_[i] >= 'a') text.text_[i] = static_cast<char>(text.text_[i] - 'a' + 'A');
    }
    return text;
  }
  // As printf's "%g".
  static NumberText Float(double value) {
    NumberText text;
    text.SetEnd(
        std::to_chars(text.begin(), text.limit(), value, std::chars_format::general, 6).ptr);
    return text;
  }

  operator std::string_view() const {  // NOLINT(google-explicit-constructor): it is a text
    return {text_.data(), end_};
  }

 private:
  NumberText() = default;
  char* begin() { return text_.data(); }
  char* limit() { return text_.data() + text_.size(); }
  void SetEnd(const char* end) { end_ = static_cast<size_t>(end - text_.data()); }

  std::array<char, 32> text_;
  size_t end_ = 0;
};

// Which bytes are shown as they are: printable ASCII, without those that `special` has.
constexpr std::array<bool, 256> PlainBytes(std::string_view special) {
  std::array<bool, 256> plain{};
  for (size_t byte = 0x20; byte < 0x7f; byte++) plain[byte] = true;
  for (const char c : special) plain[static_cast<uint8_t>(c)] = false;
  return plain;
}

constexpr std::array<bool, 256> kPlainName = PlainBytes("");

// Bytes at the beginning of `text` that are all in `plain`.
size_t PlainLength(std::string_view text, const std::array<bool, 256>& plain) {
  size_t at = 0;
  while (at < text.size() && plain[static_cast<uint8_t>(text[at])]) at++;
  return at;
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
  static constexpr std::array<bool, 256> kPlainQuoted = PlainBytes(kPlain);
  static constexpr std::string_view kControl = "\a\b\033\f\n\r\t\v";
  static constexpr std::string_view kLetters = "abefnrtv";
  out += '"';
  for (size_t at = 0; at < text.size();) {
    const size_t plain = PlainLength(text.substr(at), kPlainQuoted);
    out += text.substr(at, plain);
    at += plain;
    if (at == text.size()) break;
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
    out += NumberText::Hexadecimal(value);
  } else {
    AppendAll(out, Decimal(value, type.is_signed));
  }
}

class FieldPrinter final : public ctf::Visitor {
 public:
  FieldPrinter(std::string& out, bool color, std::vector<int>& printed)
      : out_(out), color_(color), printed_(printed) {}

  void Integer(const Type& type, uint64_t value) override {
    if (ctf::IsInternal(type)) return;
    if (type.kind == TypeKind::kEnum) {
      Enum(type, value);
    } else {
      Colored(kBold, [&] { AppendInteger(out_, type, value); });
    }
  }
  void Float(const Type&, double value) override {
    Colored(kBold, [&] { out_ += NumberText::Float(value); });
  }
  void Bool(const Type& type, bool value) override {
    if (!ctf::IsInternal(type)) Colored(kBold, [&] { out_ += value ? "true" : "false"; });
  }
  void BitMap(const Type& type, uint64_t value) override {
    if (ctf::IsInternal(type)) return;
    Colored(kBold, [&] { out_ += NumberText::Hexadecimal(value); });
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
    if (ctf::IsInternal(type)) return;
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
    if (ctf::IsInternal(member.type)) return;
    const Separator before(printed_.back()++ == 0);
    if (!color_ && member.printable) return AppendAll(out_, before, member.name, " = ");
    AppendAll(out_, before);
    Colored(kFieldName, [&] { AppendName(out_, member.name); });
    out_ += " = ";
  }
  // BeginMember and Integer, for Decoder.
  void PlainMember(const Member& member, uint64_t value) {
    if (ctf::IsInternal(member.type)) return;
    if (color_ || !member.printable) {
      BeginMember(member.type, member);
      return Integer(member.type, value);
    }
    AppendAll(out_, Separator(printed_.back()++ == 0), member.name, " = ",
              Decimal(value, member.type.is_signed));
  }
  void EndStruct(const Type&) override {
    out_ += " }";
    printed_.pop_back();
  }
  void BeginVariant(const Type&, const Member&) override { out_ += "{ "; }
  void EndVariant(const Type&) override { out_ += " }"; }
  void BeginArray(const Type&, uint64_t) override { out_ += "["; }
  void BeginElement(const Type&, uint64_t index) override {
    AppendAll(out_, Separator(index == 0), "[", Decimal(index), "] = ");
  }
  void EndArray(const Type&) override { out_ += " ]"; }

 private:
  template <typename Print>
  void Colored(std::string_view color, Print print) {
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
  std::vector<int>& printed_;  // members so far, per open structure
};

// Finds the depth in the payload of a function's event; 0 where it has none.
class DepthFinder final : public ctf::Visitor {
 public:
  void BeginMember(const Type&, const Member& member) override {
    is_here_ = member.name == "depth";
  }
  void Integer(const Type&, uint64_t value) override {
    if (is_here_) depth = value;
    is_here_ = false;
  }

  uint64_t depth = 0;

 private:
  bool is_here_ = false;
};

bool HasVisible(const Type& type) {
  for (const Member& member : type.members) {
    if (!ctf::IsInternal(member.type)) return true;
  }
  return type.members.empty();
}

// "host:program:(vpid) ", of what the environment has.
std::string Origin(const ctf::TraceClass& trace) {
  std::string out;
  for (const char* name : {"hostname", "procname"}) {
    if (const std::string* text = trace.EnvText(name)) {
      if (!out.empty()) out += ":";
      AppendName(out, *text);
    }
  }
  for (const ctf::EnvEntry& entry : trace.env) {
    const auto* vpid = std::get_if<int64_t>(&entry.value);
    if (entry.name != "vpid" || vpid == nullptr) continue;
    if (!out.empty()) out += ":";
    AppendFormat(out, "(%" PRId64 ")", *vpid);
  }
  if (!out.empty()) out += " ";
  return out;
}

}  // namespace

bool IsColorTerminal(std::FILE* out) {
  const char* term = std::getenv("TERM");
  return ::isatty(::fileno(out)) == 1 && term != nullptr && std::string_view(term) != "dumb" &&
         std::getenv("NO_COLOR") == nullptr;
}

void AppendName(std::string& out, std::string_view name) {
  while (true) {
    const size_t plain = PlainLength(name, kPlainName);
    out += name.substr(0, plain);
    name.remove_prefix(plain);
    if (name.empty()) break;
    const size_t length = PlainLength(name);
    if (length == 0) {
      AppendFormat(out, "\\x%02x", static_cast<uint8_t>(name[0]));
    } else {
      out += name.substr(0, length);
    }
    name.remove_prefix(std::max<size_t>(length, 1));
  }
}

void LocalClock::Append(std::string& out, int64_t ns) {
  const std::string_view seconds = Seconds(ns);
  AppendAll(out, seconds, ".", Nanoseconds(Magnitude(ns) % kNsPerSecond));
}

std::string_view LocalClock::Seconds(int64_t ns) {
  const int64_t second = ns / kNsPerSecond;
  const bool is_negative = ns < 0;
  if (second_ == second && is_negative_ == is_negative) return text_;
  second_ = second;
  is_negative_ = is_negative;
  text_.clear();
  const std::time_t seconds = second;
  std::tm tm{};
  if (is_negative) {
    AppendAll(text_, "-", Decimal(Magnitude(ns) / kNsPerSecond));
  } else if (::localtime_r(&seconds, &tm) == nullptr) {
    AppendAll(text_, Decimal(static_cast<uint64_t>(second)));
  } else {
    AppendFormat(text_, "%02d:%02d:%02d", tm.tm_hour, tm.tm_min, tm.tm_sec);
  }
  return text_;
}

// "[10:33:30.209430347] (+0.000000010) "
void TextPrinter::Time(int64_t ns, std::string& out) {
  const std::string_view begin = color_ ? kTime : "";
  const std::string_view end = color_ ? kReset : "";
  AppendAll(out, "[", begin, clock_.Seconds(ns), ".", Nanoseconds(Magnitude(ns) % kNsPerSecond),
            end);
  if (last_ns_) {
    // Times of a damaged stream may go back (lib/ctf/time_order.h). The difference of two int64
    // fits into uint64.
    const bool back = ns < *last_ns_;
    const uint64_t delta = back ? static_cast<uint64_t>(*last_ns_) - static_cast<uint64_t>(ns)
                                : static_cast<uint64_t>(ns) - static_cast<uint64_t>(*last_ns_);
    AppendAll(out, back ? "] (-" : "] (+", Decimal(delta / kNsPerSecond), ".",
              Nanoseconds(delta % kNsPerSecond), ") ");
  } else {
    out += "] (+?.????????\?) ";
  }
  last_ns_ = ns;
}

const std::string& TextPrinter::Title(const ctf::StreamReader& stream) {
  auto [found, added] = titles_.try_emplace(stream.item().event);
  if (!added) return found->second;
  std::string& title = found->second;
  title = Origin(stream.trace());
  if (color_) title += kEventName;
  AppendName(title, stream.item().event->name);
  if (color_) title += kReset;
  title += ": ";
  return title;
}

const std::string& TextPrinter::Packet(ctf::StreamReader& stream) {
  auto [found, added] = packets_.try_emplace(&stream);
  auto& [offset, text] = found->second;
  if (!added && offset == stream.packet_offset()) return text;
  offset = stream.packet_offset();
  text.clear();
  const std::optional<Type>& context = stream.stream()->packet_context;
  if (!context || !HasVisible(*context)) return text;
  FieldPrinter printer(text, color_, printed_);
  (void)stream.Visit(Scope::kPacketContext, printer);
  return text;
}

void TextPrinter::Indent(ctf::StreamReader& stream, std::string& out) {
  if (!stream.item().event->name.starts_with(kFunctionPrefix)) return;
  DepthFinder finder;
  (void)stream.Visit(Scope::kPayload, finder);
  out.append(2 * std::min(finder.depth, kMaxIndent), ' ');
}

void TextPrinter::Event(ctf::StreamReader& stream, std::string& out) {
  const ctf::Item& item = stream.item();
  if (item.time_ns != ctf::kNoTime) Time(item.time_ns, out);
  if (indent_) Indent(stream, out);
  const std::string& packet = Packet(stream);
  AppendAll(out, Title(stream), packet);
  FieldPrinter printer(out, color_, printed_);
  bool first = packet.empty();
  const auto part = [&](Scope scope, const std::optional<Type>& type) {
    if (!type || !HasVisible(*type)) return;
    if (!first) out += ", ";
    first = false;
    (void)stream.Visit(scope, printer);
  };
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
    LocalClock clock;
    clock.Append(out, item.time_ns);
    out += "] and [";
    clock.Append(out, item.end_ns);
    out += "]";
  }
  return out + " in stream \"" + stream.file() +
         "\" (stream class ID: " + std::to_string(stream.stream()->id) +
         ", stream ID: " + std::to_string(stream.instance_id()) + ").";
}

}  // namespace weft::cli
