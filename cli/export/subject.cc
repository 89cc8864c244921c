// SPDX-License-Identifier: Apache-2.0
#include "cli/export/subject.h"

#include <array>
#include <utility>
#include <variant>

namespace weft::cli {
namespace {

constexpr std::array<std::pair<std::string_view, SpanEdge>, 5> kEdgeWords = {{
    {"entry", SpanEdge::kBegin},
    {"begin", SpanEdge::kBegin},
    {"exit", SpanEdge::kEnd},
    {"return", SpanEdge::kEnd},
    {"end", SpanEdge::kEnd},
}};

constexpr std::string_view kFunctionPrefix = "function:";

bool IsSeparator(char c) { return c == '_' || c == ':' || c == '.'; }

std::string_view EnvTextOf(const ctf::TraceClass& trace, std::string_view name) {
  const std::string* text = trace.EnvText(name);
  return text == nullptr ? std::string_view() : *text;
}

}  // namespace

SpanName SpanOf(std::string_view event) {
  // The words in the name of a function say nothing.
  const bool is_function = event.starts_with(kFunctionPrefix);
  for (size_t begin = is_function ? event.rfind('_') + 1 : 0; begin < event.size();) {
    size_t end = begin;
    while (end < event.size() && !IsSeparator(event[end])) end++;
    const std::string_view word = event.substr(begin, end - begin);
    for (const auto& [edge_word, edge] : kEdgeWords) {
      if (word != edge_word) continue;
      // The word goes with the separator behind it; at the name's end with the one before it.
      const size_t from = end == event.size() && begin > 0 ? begin - 1 : begin;
      const size_t to = end == event.size() ? end : end + 1;
      std::string name(event.substr(0, from));
      name += event.substr(to);
      return {edge, name};
    }
    begin = end + 1;
  }
  return {SpanEdge::kNone, std::string(event)};
}

const Subject& SubjectReader::EnvironmentOf(const ctf::TraceClass& trace) {
  const auto [found, added] = environments_.try_emplace(&trace);
  Subject& subject = found->second;
  if (!added) return subject;
  subject.host = EnvTextOf(trace, "node");
  if (subject.host.empty()) subject.host = EnvTextOf(trace, "hostname");
  subject.kubernetes_namespace = EnvTextOf(trace, "namespace");
  subject.pod = EnvTextOf(trace, "pod");
  subject.container = EnvTextOf(trace, "container");
  // LTTng's traces of one process each.
  subject.program = EnvTextOf(trace, "procname");
  for (const ctf::EnvEntry& entry : trace.env) {
    const auto* number = std::get_if<int64_t>(&entry.value);
    if (entry.name == "vpid" && number != nullptr) subject.pid = *number;
  }
  return subject;
}

bool SubjectReader::Switches(const ctf::EventRecordClass& event) {
  const auto [found, added] = switches_.try_emplace(&event);
  if (added) found->second = event.name == "sched_switch";
  return found->second;
}

const Subject& SubjectReader::Read(ctf::StreamReader& stream) {
  subject_ = EnvironmentOf(stream.trace());
  Visitor& visitor = *this;
  (void)stream.Visit(ctf::Scope::kPacketContext, visitor);
  (void)stream.Visit(ctf::Scope::kStreamContext, visitor);
  (void)stream.Visit(ctf::Scope::kEventContext, visitor);
  if (Switches(*stream.item().event)) (void)stream.Visit(ctf::Scope::kPayload, visitor);
  return subject_;
}

void SubjectReader::BeginMember(const ctf::Type&, const ctf::Member& member) {
  const auto [found, added] = facts_.try_emplace(&member, Fact::kNone);
  if (added) {
    static constexpr std::array<std::pair<std::string_view, Fact>, 8> kNames = {{
        {"vpid", Fact::kPid},
        {"pid", Fact::kPid},
        {"vtid", Fact::kTid},
        {"tid", Fact::kTid},
        {"cpu_id", Fact::kCpu},
        {"procname", Fact::kProgram},
        {"next_tid", Fact::kNextTid},
        {"next_comm", Fact::kNextProgram},
    }};
    for (const auto& [name, fact] : kNames) {
      if (member.name == name) found->second = fact;
    }
  }
  current_ = found->second;
}

void SubjectReader::Integer(const ctf::Type&, uint64_t value) {
  const auto number = static_cast<int64_t>(value);
  if (current_ == Fact::kPid) subject_.pid = number;
  if (current_ == Fact::kTid) subject_.tid = number;
  if (current_ == Fact::kCpu) subject_.cpu = number;
  if (current_ == Fact::kNextTid) subject_.next_tid = number;
  current_ = Fact::kNone;
}

void SubjectReader::Text(const ctf::Type&, std::string_view text) {
  if (current_ == Fact::kProgram) subject_.program = text;
  if (current_ == Fact::kNextProgram) subject_.next_program = text;
  current_ = Fact::kNone;
}

}  // namespace weft::cli
