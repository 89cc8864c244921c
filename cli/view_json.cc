// SPDX-License-Identifier: Apache-2.0
#include "cli/view_json.h"

#include <array>
#include <cinttypes>
#include <cstdio>
#include <ctime>
#include <optional>

#include "cli/json_printer.h"

namespace weft::cli {
namespace {

using ctf::ItemKind;
using ctf::Scope;
using ctf::Type;

void AppendNanoseconds(std::string& out, int64_t ns) {
  out += ns == ctf::kNoTime ? "null" : std::to_string(ns);
}

void AppendEvent(ctf::StreamReader& stream, std::string& out) {
  const ctf::Item& item = stream.item();
  out += "{\"time\":";
  AppendIsoTime(out, item.time_ns);
  out += ",\"time_ns\":";
  AppendNanoseconds(out, item.time_ns);
  for (const char* name : {"hostname", "node", "namespace", "pod", "container"}) {
    const std::string* text = stream.trace().EnvText(name);
    if (text == nullptr) continue;
    out.append(",\"").append(name).append("\":");
    AppendJsonString(out, *text);
  }
  out += ",\"event\":";
  AppendJsonString(out, item.event->name);
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
  if (::gmtime_r(&seconds, &tm) == nullptr) return AppendJsonString(out, "");
  std::snprintf(text.data(), text.size(), "\"%04d-%02d-%02dT%02d:%02d:%02d.%09" PRId64 "Z\"",
                tm.tm_year + 1900, tm.tm_mon + 1, tm.tm_mday, tm.tm_hour, tm.tm_min, tm.tm_sec,
                rest);
  out += text.data();
}

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
  AppendJsonString(out, stream.file());
  out += "}\n";
}

}  // namespace weft::cli
