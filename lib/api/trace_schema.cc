// SPDX-License-Identifier: Apache-2.0
// The table of a Trace's metadata and spec; the status is in status_schema.cc. Each object is one
// function; each field one MakeField with its name, member, type and meaning. The texts are what
// `kubectl explain` and docs/formats/trace.md show.
//
// Choices a reviewer may ask about: absent and empty mean the same for every optional field;
// lists of scalars that have no order are sets; lists of rules are atomic because two rules may
// have one name; of alternatives (logLevel) each is a field of its own; buffer and output cannot
// change, because rings that exist keep their shape.
#include "lib/api/trace_schema.h"

#include <algorithm>
#include <array>
#include <iterator>

#include "lib/api/context.h"
#include "lib/api/function_args.h"
#include "lib/api/function_fields.h"
#include "lib/api/function_sets.h"
#include "lib/api/limits.h"
#include "lib/api/names.h"
#include "lib/api/quantity.h"
#include "lib/api/scalar_types.h"
#include "lib/api/value_type.h"

namespace weft::api {
namespace {

using StringMapPtr = TypePtr<std::map<std::string, std::string>>;

constexpr std::string_view kLabelKeyPattern =
    "^([a-z0-9]([-a-z0-9.]*[a-z0-9])?/)?[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?$";
constexpr std::string_view kLabelValuePattern =
    "^([A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?)?$";

TypePtr<std::string> LabelKey() {
  return String({.type_name = "label key",
                 .max = limits::kLabelKey,
                 .check = CheckLabelKey,
                 .pattern = std::string(kLabelKeyPattern),
                 .allowed = "must be the key of a label, such as app or example.com/tier"});
}

TypePtr<std::string> LabelValue() {
  return String({.type_name = "label value",
                 .max = limits::kLabelValue,
                 .check = CheckLabelValue,
                 .pattern = std::string(kLabelValuePattern),
                 .allowed = "must be the value of a label: letters, digits, - _ and ., at most 63, "
                            "with a letter or digit at both ends",
                 .may_be_empty = true});
}

StringRules EventPattern() {
  return {.type_name = "event pattern",
          .max = limits::kEventName,
          .check = CheckEventPattern,
          .pattern =
              "^([A-Za-z0-9_.$*-]+:[A-Za-z0-9_.$*-]+|[A-Za-z0-9_.$-]*\\*"
              "[A-Za-z0-9_.$*-]*)$",
          .allowed =
              "must be provider:event, such as shop:order_placed; * stands for any "
              "characters, as in shop:*"};
}

TypePtr<std::string> ExcludedEvents() {
  StringRules rules = EventPattern();
  rules.cheap_rule = "self.matches(r'^[\\w$*.:-]+$') && self.matches('[:*]')";
  return String(rules);
}

TypePtr<std::string> KernelPattern() {
  return String({.type_name = "pattern",
                 .max = limits::kEventName,
                 .check = CheckKernelPattern,
                 .pattern = "^[A-Za-z0-9_.$*-]+$",
                 .allowed = "must be a name of letters, digits, _ . $ and -; * stands for any "
                            "characters, as in sched_*"});
}

TypePtr<std::string> PrintablePattern(std::size_t max) {
  return String({.type_name = "pattern",
                 .max = max,
                 .check = CheckPrintablePattern,
                 .pattern = "^[^\\x00-\\x1f\\x7f]+$",
                 .allowed = "must be a name without control characters"});
}

// Names of functions are so long that any pattern costs too much.
TypePtr<std::string> ExcludedFunctions() {
  return String(
      {.type_name = "pattern", .max = limits::kFunctionName, .check = CheckPrintablePattern});
}

TypePtr<std::string> Identifier(std::size_t max) {
  return String({.type_name = "identifier",
                 .max = max,
                 .check = CheckIdentifier,
                 .pattern = "^[A-Za-z_][A-Za-z0-9_]*$",
                 .allowed = "must be letters, digits and _, and begin with a letter or _"});
}

TypePtr<std::vector<std::string>> Exclusions(TypePtr<std::string> pattern) {
  return ListOf(std::move(pattern), limits::kExclusions, ListKind::kSet);
}

constexpr std::string_view kFilterDoc =
    "Record an event only if this expression over its fields and contexts is true, as in LTTng: "
    "\"size > 4096 && $ctx.procname == \\\"nginx*\\\"\".";

// --- pods ------------------------------------------------------------------------------------

constexpr std::array<std::string_view, 4> kOperators = {"In", "NotIn", "Exists", "DoesNotExist"};

TypePtr<LabelRequirement> LabelRequirementSchema() {
  using T = LabelRequirement;
  return Object<T>(
      "LabelRequirement",
      {MakeField("key", &T::key, LabelKey(), "Key of the label.", kRequired),
       MakeField("operator", &T::op, Enum<SelectorOperator>(kOperators),
                 "Condition on the label's value, or on its existence.", kRequired),
       MakeField("values", &T::values,
                 ListOf(LabelValue(), limits::kMatchValues, ListKind::kAtomic),
                 "Values for In and NotIn.")},
      {MakeRule<T>(
          {"self.operator in ['In', 'NotIn'] ? has(self.values) && size(self.values) > 0 "
           ": !has(self.values) || size(self.values) == 0",
           "must have values with In and NotIn, and none with Exists and DoesNotExist", ""},
          [](const T& r) {
            const bool wants = r.op == SelectorOperator::kIn || r.op == SelectorOperator::kNotIn;
            return wants != r.values.empty();
          })});
}

}  // namespace

TypePtr<LabelSelector> LabelSelectorSchema() {
  using T = LabelSelector;
  const StringMapPtr labels =
      StringMap({.max_entries = limits::kMatchLabels, .max_bytes = 0, .check_key = CheckLabelKey},
                LabelValue());
  return Object<T>("LabelSelector",
                   {MakeField("matchLabels", &T::match_labels, labels,
                              "Labels that the object must have, with these values."),
                    MakeField("matchExpressions", &T::match_expressions,
                              ListOf(LabelRequirementSchema(), limits::kMatchExpressions),
                              "Requirements that the object's labels must all meet.")});
}

namespace {

TypePtr<NodeSelection> NodesSchema() {
  using T = NodeSelection;
  return Object<T>("NodeSelection", {MakeField("selector", &T::selector, LabelSelectorSchema(),
                                               "Nodes, by label. Absent: all nodes.")});
}

TypePtr<PodSelection> PodsSchema() {
  using T = PodSelection;
  const auto container =
      String({.type_name = "name",
              .max = limits::kDnsLabel,
              .check = CheckDnsLabel,
              .pattern = "^[a-z0-9]([-a-z0-9]*[a-z0-9])?$",
              .allowed = "must be the name of a container: lower-case letters, digits and -"});
  return Object<T>("PodSelection",
                   {MakeField("selector", &T::selector, LabelSelectorSchema(),
                              "Pods of the Trace's namespace, by label. Absent: all pods."),
                    MakeField("containers", &T::containers,
                              ListOf(container, limits::kContainers, ListKind::kSet),
                              "Names of the containers to trace. Absent: all containers.")});
}

// --- user space ------------------------------------------------------------------------------

TypePtr<LogLevelRule> LogLevelSchema() {
  using R = LogLevelRange;
  using T = LogLevelRule;
  const auto level = Enum<LogLevel>(LogLevelNames());
  const auto range = Object<R>(
      "LogLevelRange", {MakeField("from", &R::from, level, "One end of the range.", kRequired),
                        MakeField("to", &R::to, level,
                                  "The other end; either may be the more severe one.", kRequired)});
  return Object<T>(
      "LogLevelRule",
      {MakeField("exactly", &T::exactly, level, "This level only."),
       MakeField("atLeast", &T::at_least, level, "This level and the more severe ones."),
       MakeField("range", &T::range, range, "All levels between two levels, both included.")},
      {MakeRule<T>(
          {"[has(self.exactly), has(self.atLeast), has(self.range)].filter(x, x).size() == 1",
           "must have exactly one of exactly, atLeast, range", ""},
          [](const T& r) {
            return r.exactly.has_value() + r.at_least.has_value() + r.range.has_value() == 1;
          })});
}

TypePtr<EventRule> EventRuleSchema() {
  using T = EventRule;
  return Object<T>(
      "EventRule",
      {MakeField("name", &T::name, String(EventPattern()),
                 "Tracepoints to record: provider:event, where * matches any characters.",
                 kRequired),
       MakeField("exclude", &T::exclude, Exclusions(ExcludedEvents()),
                 "Patterns of tracepoints that are not recorded even if name matches."),
       MakeField("logLevel", &T::log_level, LogLevelSchema(),
                 "Record only events of these log levels. Absent: all levels."),
       MakeField("filter", &T::filter, FilterString(), kFilterDoc)});
}

TypePtr<FunctionArg> FunctionArgSchema() {
  using A = FunctionArg;
  const auto text = [](std::size_t max) {
    return String({.type_name = "string",
                   .max = max,
                   .check = CheckPrintablePattern,
                   .pattern = "^[^\\x00-\\x1f\\x7f]+$",
                   .allowed = "must be a text without control characters"});
  };
  return Object<A>(
      "FunctionArg",
      {MakeField("name", &A::name, Identifier(limits::kIdentifier),
                 "Name of the field in the event.", kRequired),
       MakeField("type", &A::type, Enum<ValueType>(kValueTypes),
                 "Type in C. Of a string, and of bytes, the argument is the address.", kRequired),
       MakeField("length", &A::length, text(limits::kIdentifier),
                 "For bytes: how many there are. The name of an integer argument, a number in "
                 "quotes, or return: as many as the function returns, read at its end."),
       MakeField("path", &A::path, text(limits::kMemberPath),
                 "For a member of what an argument points to: request->header.size. A member is a "
                 "name, or the number of its first byte: request->16. With & before it, a string "
                 "or bytes are the member itself (an array).")});
}

// An argument of a probe in the kernel.
TypePtr<FunctionArg> ProbeArgSchema() {
  using A = FunctionArg;
  return Object<A>("ProbeArg", {MakeField("name", &A::name, Identifier(limits::kIdentifier),
                                          "Name of the field in the event.", kRequired),
                                MakeField("type", &A::type, Enum<ValueType>(kSingleTypes),
                                          "Type of the argument in C.", kRequired)});
}

// Its filter, for which options.check_filter has been called.
std::string WhyNotFunctionFilter(const FunctionRule& rule, const ParseOptions& options) {
  if (rule.filter.empty() || !options.names_in_filter) return "";
  return WhyNotNamed(rule, options.names_in_filter(rule.filter));
}

TypePtr<FunctionRule> FunctionRuleSchema() {
  using T = FunctionRule;
  const auto type = Enum<ValueType>(kSingleTypes);
  const auto arg = FunctionArgSchema();
  return Object<T>(
      "FunctionRule",
      {MakeField(
           "name", &T::name, PrintablePattern(limits::kFunctionName),
           "Functions to record: the symbol, or the C++ name with or without its arguments; * "
           "matches any characters."),
       MakeField(
           "set", &T::set, Enum<FunctionSet>(kFunctionSets),
           "Instead of a name: functions of the C library or of OpenSSL, with the types of their "
           "arguments and return values. malloc: the heap; pthread: locks, conditions, semaphores "
           "and threads; dl: dlopen and its neighbours; io: files and sockets; ssl: OpenSSL's "
           "connections."),
       MakeField(
           "object", &T::object, PrintablePattern(limits::kFileName),
           "File name of the program or library that has the function; may be a pattern, such "
           "as libmylib.so*. Absent: any file."),
       MakeField("exclude", &T::exclude, Exclusions(ExcludedFunctions()),
                 "Patterns of functions that are not recorded even if name matches."),
       MakeField(
           "record", &T::record,
           ListOf(Enum<FunctionMoment>(kMomentNames), kMomentNames.size(), ListKind::kSet),
           "The events of each call: entry, with the arguments; exit, with the return value; call, "
           "one event at the end, with both and the duration in ns. Absent: entry and exit; of a "
           "set: call."),
       MakeField(
           "args", &T::args, ListOf(arg, limits::kFunctionArgs),
           "The first arguments, in order, with their types in C. Absent: those of the debug "
           "information; where there is none, the argument registers of integers, as rdi, rsi, "
           "rdx, "
           "rcx, r8 and r9. Those with a path are no arguments in C, and are recorded beside the "
           "others. Of texts and bytes, up to 512 bytes of all of a call together are recorded."),
       MakeField(
           "returns", &T::returns, type,
           "Type of the return value in C. Absent: that of the debug information; where there "
           "is none, it is not recorded."),
       MakeField("filter", &T::filter, FilterString(),
                 "Record only calls for which this expression over the arguments is true, as they "
                 "were at the entry. With record: [call] also over ret and duration, with [exit] "
                 "over ret; everywhere over depth.")},
      {MakeRule<T>({"has(self.name) != has(self.set)", "must have exactly one of name, set", ""},
                   [](const T& f) { return f.name.empty() == f.set.has_value(); }),
       MakeRule<T>({"!has(self.set) || ((!has(self.args) || size(self.args) == 0) && "
                    "!has(self.returns))",
                    "must be without args and returns, which the set has", "set"},
                   [](const T& f) { return !f.set || (f.args.empty() && !f.returns); }),
       {{"", "", "args"}, WhyNotArgs},
       {{"", "", "filter"}, nullptr, WhyNotFunctionFilter}});
}

TypePtr<UserSpec> UserSchema() {
  using T = UserSpec;
  return Object<T>(
      "UserSpec",
      {MakeField("events", &T::events, ListOf(EventRuleSchema(), limits::kEventRules),
                 "Tracepoints. An event is recorded if any of the rules matches."),
       MakeField(
           "functions", &T::functions, ListOf(FunctionRuleSchema(), limits::kEventRules),
           "Functions of unmodified programs: entry and exit of each call, with arguments and "
           "return value. On x86-64 only."),
       MakeField(
           "attach", &T::attach, Bool(),
           "Record also programs of containers that were made without the library, whatever labels "
           "their namespace has: the agent loads it into them while they run. On x86-64 only, and "
           "only if the chart's value agent.attach.enabled allows it; the condition "
           "ProcessesAttached has the refusals. Local mode has weft record --pid instead.",
           kShowDefault)});
}

// --- kernel ----------------------------------------------------------------------------------

TypePtr<KernelRule> KernelRuleSchema(std::string_view name_doc) {
  using T = KernelRule;
  return Object<T>("KernelRule",
                   {MakeField("name", &T::name, KernelPattern(), name_doc, kRequired),
                    MakeField("exclude", &T::exclude, Exclusions(KernelPattern()),
                              "Patterns of events that are not recorded even if name matches."),
                    MakeField("filter", &T::filter, FilterString(), kFilterDoc)});
}

constexpr std::array<std::string_view, 3> kProbePoints = {"entry", "return", "both"};

TypePtr<ProbeRule> ProbeRuleSchema() {
  using T = ProbeRule;
  return Object<T>(
      "ProbeRule",
      {MakeField("name", &T::name, Identifier(limits::kIdentifier),
                 "Name of the event that is recorded.", kRequired),
       MakeField("symbol", &T::symbol,
                 String({.type_name = "symbol",
                         .max = limits::kSymbolName,
                         .check = CheckKernelPattern,
                         .pattern = "^[A-Za-z0-9_.$-]+$",
                         .allowed = "must be the name of one kernel function, such as vfs_read"}),
                 "The kernel function.", kRequired),
       MakeField("offset", &T::offset, Int<std::uint32_t>(0, limits::kProbeOffset),
                 "Bytes behind the function's start, for entry only.", kShowDefault),
       MakeField("at", &T::at, Enum<ProbePoint>(kProbePoints),
                 "Place in the function: its entry, its return, or both.", kShowDefault),
       MakeField("filter", &T::filter, FilterString(), kFilterDoc)},
      {MakeRule<T>({"!has(self.offset) || self.offset == 0 || !has(self.at) || self.at == 'entry'",
                    "only a probe at entry can have an offset", "offset"},
                   [](const T& p) { return p.offset == 0 || p.at == ProbePoint::kEntry; }),
       {{"", "", "symbol"}, [](const T& p) {
          return p.symbol.find('*') == std::string::npos
                     ? std::string()
                     : std::string("must be one symbol, without *");
        }}});
}

std::vector<Rule<UserProbeRule>> UserProbeRules() {
  using T = UserProbeRule;
  return {
      MakeRule<T>(
          {"has(self.function) != has(self.usdt)", "must have exactly one of function, usdt", ""},
          [](const T& p) { return p.function.empty() != p.usdt.empty(); }),
      MakeRule<T>({"!has(self.offset) || self.offset == 0 || !has(self.at) || self.at == 'entry'",
                   "only a probe at entry can have an offset", "offset"},
                  [](const T& p) { return p.offset == 0 || p.at == ProbePoint::kEntry; }),
      MakeRule<T>({"!has(self.usdt) || ((!has(self.at) || self.at == 'entry') && "
                   "(!has(self.offset) || self.offset == 0) && "
                   "(!has(self.args) || size(self.args) == 0) && !has(self.returns))",
                   "must be without at, offset, args and returns: the program's file defines these",
                   "usdt"},
                  [](const T& p) {
                    return p.usdt.empty() || (p.at == ProbePoint::kEntry && p.offset == 0 &&
                                              p.args.empty() && !p.returns);
                  })};
}

TypePtr<UserProbeRule> UserProbeRuleSchema() {
  using T = UserProbeRule;
  return Object<T>(
      "UserProbeRule",
      {MakeField("name", &T::name, Identifier(limits::kIdentifier),
                 "Name of the event that is recorded.", kRequired),
       MakeField(
           "object", &T::object,
           String({.type_name = "path",
                   .max = limits::kPath,
                   .check = CheckFilePath,
                   .pattern = "^/[^\\x00-\\x1f\\x7f]+$",
                   .allowed = "must be a path that begins with /"}),
           "Path of the program's or library's file in its container (in a ClusterTrace: on the "
           "node).",
           kRequired),
       MakeField("function", &T::function, PrintablePattern(limits::kFunctionName),
                 "The function, by its symbol."),
       MakeField("usdt", &T::usdt,
                 String({.type_name = "USDT probe",
                         .max = limits::kUsdtName,
                         .check = CheckUsdtName,
                         .pattern = "^[A-Za-z0-9_]+:[A-Za-z0-9_]+$",
                         .allowed = "must be provider:name"}),
                 "Instead of a function: the statically defined probe, as provider:name."),
       MakeField("offset", &T::offset, Int<std::uint32_t>(0, limits::kProbeOffset),
                 "Bytes behind the function's start, for entry only.", kShowDefault),
       MakeField("at", &T::at, Enum<ProbePoint>(kProbePoints),
                 "Place in the function: its entry, its return, or both. Returns of Go functions "
                 "cannot be probed.",
                 kShowDefault),
       MakeField("args", &T::args, ListOf(ProbeArgSchema(), limits::kUserProbeArgs),
                 "The arguments, in order: integers, pointers and strings. "
                 "Absent: the argument registers, as arg0 to arg5."),
       MakeField("returns", &T::returns, Enum<ValueType>(kSingleTypes),
                 "Type of the return value. Absent: the return register, as a number."),
       MakeField("filter", &T::filter, FilterString(), kFilterDoc)},
      UserProbeRules());
}

TypePtr<KernelSpec> KernelSchema() {
  using T = KernelSpec;
  return Object<T>(
      "KernelSpec",
      {MakeField("tracepoints", &T::tracepoints,
                 ListOf(KernelRuleSchema("Tracepoints of the kernel, such as sched_*; * matches "
                                         "any characters."),
                        limits::kEventRules),
                 "Tracepoints of the kernel, recorded when they concern the selected pods."),
       MakeField("syscalls", &T::syscalls,
                 ListOf(KernelRuleSchema("System calls, such as openat; * matches any "
                                         "characters. A number, such as \"257\", is the number of "
                                         "a system call of 64-bit programs."),
                        limits::kEventRules),
                 "Entry and exit of system calls that the selected pods make."),
       MakeField(
           "syscallBuffer", &T::syscall_buffer, Int<std::uint32_t>(0, limits::kSyscallBuffer),
           "Number of bytes to record of each buffer that a system call reads or writes: data of "
           "files, pipes and sockets. This is the programs' own data. With 0 only addresses "
           "and sizes are recorded.",
           kShowDefault),
       MakeField("probes", &T::probes, ListOf(ProbeRuleSchema(), limits::kEventRules),
                 "Probes on functions of the kernel."),
       MakeField("statedump", &T::statedump, Bool(),
                 "Whether a state dump is recorded when recording begins: processes, open files, "
                 "mappings, sockets.",
                 kShowDefault),
       MakeField("statedumpRequest", &T::statedump_request,
                 String({.max = limits::kRequest, .may_be_empty = true}),
                 "Any text. A change of this text during recording starts another state dump."),
       MakeField(
           "userProbes", &T::user_probes, ListOf(UserProbeRuleSchema(), limits::kEventRules),
           "Probes on functions of programs, through the kernel. They also work for programs "
           "that cannot load libweft.so (static, setuid). Each hit costs some microseconds.")});
}

// --- how it is recorded ----------------------------------------------------------------------

TypePtr<std::vector<std::string>> ContextSchema() {
  const std::string pattern = "^(" + PlainContextNames("|") +
                              "|perf:(thread|cpu):([A-Za-z0-9-]+|raw:r[0-9a-fA-F]{1,16}:"
                              "[A-Za-z_][A-Za-z0-9_]*)"
                              "|\\$app\\.[A-Za-z_][A-Za-z0-9_]*:[A-Za-z_][A-Za-z0-9_]*)$";
  return ListOf(String({.type_name = "context",
                        .max = limits::kContextName,
                        .check = CheckContextName,
                        .pattern = pattern,
                        .allowed = "must be one of " + PlainContextNames(", ") +
                                   "; perf:thread:COUNTER, perf:cpu:COUNTER, or "
                                   "$app.PROVIDER:NAME"}),
                limits::kContexts, ListKind::kSet);
}

TypePtr<Trackers> TrackersSchema() {
  using T = Trackers;
  const auto pids =
      ListOf(Int<std::uint32_t>(1, limits::kMaxPid), limits::kTrackedIds, ListKind::kSet);
  const auto ids =
      ListOf(Int<std::uint32_t>(0, limits::kMaxUid), limits::kTrackedIds, ListKind::kSet);
  return Object<T>(
      "Trackers",
      {MakeField("vpid", &T::vpid, pids,
                 "Process ids, as the container sees them. Absent: all processes."),
       MakeField("vuid", &T::vuid, ids, "User ids, as the container sees them. Absent: all users."),
       MakeField(
           "vgid", &T::vgid, ids,
           "Group ids, as the container sees them, for kernel events only. Absent: all groups."),
       MakeField(
           "pid", &T::pid, pids,
           "Process ids, as the node sees them, for kernel events of a ClusterTrace or in local "
           "mode only. Absent: all processes."),
       MakeField("uid", &T::uid, ids,
                 "User ids, as the node sees them, like pid. Absent: all users."),
       MakeField("gid", &T::gid, ids,
                 "Group ids, as the node sees them, like pid. Absent: all groups.")});
}

constexpr std::array<std::string_view, 2> kBufferModes = {"discard", "overwrite"};

TypePtr<BufferSpec> BufferSchema() {
  using T = BufferSpec;
  const std::string limit = FormatQuantity(limits::kMaxSlotBytes);
  return Object<T>(
      "BufferSpec",
      {MakeField("size", &T::size,
                 PowerOfTwoQuantity(limits::kMinSubBufferBytes, limits::kMaxSubBufferBytes),
                 "Size of one sub-buffer. The largest event is a quarter of it.", kShowDefault),
       MakeField("count", &T::count, PowerOfTwo(limits::kMinSubBuffers, limits::kMaxSubBuffers),
                 "Number of sub-buffers per CPU, or per thread that runs at the same time. Memory "
                 "is allocated as it is needed, and is charged to the pod.",
                 kShowDefault),
       MakeField("mode", &T::mode, Enum<BufferMode>(kBufferModes),
                 "When all sub-buffers are full: discard new events and count them, or overwrite "
                 "the oldest events (a flight recorder).",
                 kShowDefault)},
      {MakeRule<T>({"!has(self.size) || !has(self.count) || !isQuantity(self.size) || "
                    "quantity(self.size).asInteger() * self.count <= " +
                        std::to_string(limits::kMaxSlotBytes),
                    "size times count must be at most " + limit, ""},
                   [](const T& b) { return b.size * b.count <= limits::kMaxSlotBytes; }),
       {{"self == oldSelf", "cannot be changed; make a new Trace", ""}, nullptr}});
}

constexpr std::array<std::string_view, 2> kOutputModes = {"stream", "snapshot"};

TypePtr<OutputSpec> OutputSchema() {
  using T = OutputSpec;
  return Object<T>(
      "OutputSpec",
      {MakeField("mode", &T::mode, Enum<OutputMode>(kOutputModes),
                 "stream: events are delivered while they are recorded. snapshot: the contents of "
                 "the buffers are delivered once, when the Trace ends.",
                 kShowDefault)},
      {{{"self == oldSelf", "cannot be changed; make a new Trace", ""}, nullptr}});
}

TypePtr<StorageSpec> StorageSchema() {
  using T = StorageSpec;
  return Object<T>(
      "StorageSpec",
      {MakeField("maxSize", &T::max_size,
                 Quantity(limits::kMinStorageBytes, limits::kMaxStorageBytes),
                 "Bytes that the relay keeps of the Trace: what comes beyond them replaces the "
                 "oldest events. Absent: the relay's own limits alone."),
       MakeField("maxAge", &T::max_age, Duration(limits::kMinStorageAge, limits::kMaxDuration),
                 "The relay removes events that are older, a file of each stream at a time. "
                 "Absent: the relay's own limit alone.")});
}

std::string KernelOnlyContext(const TraceSpec& spec) {
  if (spec.RecordsKernel()) return "";
  for (const std::string& name : spec.context) {
    if (const ContextDomains domains = LookUpContext(name); domains.kernel && !domains.user)
      return Quote(name) + " exists for kernel events only, and spec.kernel has none";
  }
  return "";
}

std::string UserOnlyContext(const TraceSpec& spec) {
  if (spec.RecordsUser()) return "";
  for (const std::string& name : spec.context) {
    if (const ContextDomains domains = LookUpContext(name); domains.user && !domains.kernel)
      return Quote(name) + " exists for events of user space only, and spec.user has none";
  }
  return "";
}

constexpr const char* kNotWithFunctions =
    " is a context of an application, which cannot be read at calls of functions: put spec.user."
    "functions into a Trace of its own";

bool IsOfApplication(const std::string& name) { return name.starts_with(kAppPrefix); }

// A function that is called to get such a value could be hooked itself.
std::string AppContextOfFunctions(const TraceSpec& spec) {
  const auto of = std::ranges::find_if(spec.context, IsOfApplication);
  if (spec.user.functions.empty() || of == spec.context.end()) return "";
  return Quote(*of) + kNotWithFunctions;
}

std::string AppFilterOfFunctions(const TraceSpec& spec, const ParseOptions& options) {
  if (spec.user.functions.empty() || spec.filter.empty() || !options.names_in_filter) return "";
  const std::vector<std::string> names = options.names_in_filter(spec.filter);
  const auto of = std::ranges::find_if(names, IsOfApplication);
  return of == names.end() ? "" : Quote(*of) + kNotWithFunctions;
}

// Returns a CEL expression: has a list two levels below self an item?
std::string HasItems(const std::string& part, const std::string& list) {
  return "(has(self." + part + ") && has(self." + part + "." + list + ") && size(self." + part +
         "." + list + ") > 0)";
}

Rule<TraceSpec> SnapshotRule() {
  return MakeRule<TraceSpec>(
      {"!has(self.output) || !has(self.output.mode) || self.output.mode != 'snapshot' || "
       "(has(self.buffer) && has(self.buffer.mode) && self.buffer.mode == 'overwrite')",
       "must have mode: overwrite with output.mode: snapshot, which keeps the newest events",
       "buffer"},
      [](const TraceSpec& s) {
        return s.output.mode != OutputMode::kSnapshot || s.buffer.mode == BufferMode::kOverwrite;
      });
}

// User space knows its own processes and users only. A tracker that is left out would make the
// session record more.
Rule<TraceSpec> KernelTrackersRule() {
  const std::string user = HasItems("user", "events") + " || " + HasItems("user", "functions");
  const std::string trackers = HasItems("trackers", "vgid") + " || " + HasItems("trackers", "pid") +
                               " || " + HasItems("trackers", "uid") + " || " +
                               HasItems("trackers", "gid");
  return MakeRule<TraceSpec>(
      {"!(" + user + ") || !(" + trackers + ")",
       "vgid, pid, uid and gid exist for kernel events only, and spec.user has events", "trackers"},
      [](const TraceSpec& s) {
        const Trackers& t = s.trackers;
        return !s.RecordsUser() ||
               (t.vgid.empty() && t.pid.empty() && t.uid.empty() && t.gid.empty());
      });
}

std::vector<Rule<TraceSpec>> SpecRules() {
  using T = TraceSpec;
  const std::string records =
      HasItems("user", "events") + " || " + HasItems("user", "functions") + " || " +
      HasItems("kernel", "tracepoints") + " || " + HasItems("kernel", "syscalls") + " || " +
      HasItems("kernel", "probes") + " || " + HasItems("kernel", "userProbes");
  return {MakeRule<T>({records,
                       "records nothing: give user.events, user.functions, kernel.tracepoints, "
                       "kernel.syscalls, kernel.probes or kernel.userProbes",
                       ""},
                      [](const T& s) { return s.RecordsUser() || s.RecordsKernel(); }),
          SnapshotRule(),
          KernelTrackersRule(),
          {{"", "", "context"}, KernelOnlyContext},
          {{"", "", "context"}, UserOnlyContext},
          {{"", "", "context"}, AppContextOfFunctions},
          {{"", "", "filter"}, nullptr, AppFilterOfFunctions}};
}

std::vector<Rule<TraceSpec>> ClusterSpecRules() {
  using T = TraceSpec;
  return {MakeRule<T>(
              {HasItems("kernel", "tracepoints") + " || " + HasItems("kernel", "syscalls") +
                   " || " + HasItems("kernel", "probes"),
               "records nothing: give kernel.tracepoints, kernel.syscalls or kernel.probes", ""},
              [](const T& s) { return s.RecordsKernel(); }),
          SnapshotRule(),
          {{"", "", "context"}, UserOnlyContext}};
}

// Fields that Trace and ClusterTrace have in common. They follow those that select pods or nodes.
std::vector<Field<TraceSpec>> HowFields() {
  using T = TraceSpec;
  return {
      MakeField("filter", &T::filter, FilterString(),
                "A filter for every event, in addition to the event's own filter."),
      MakeField("context", &T::context, ContextSchema(),
                "Contexts: values to record with every event, by LTTng's names: vpid, vtid, "
                "procname, perf:thread:COUNTER, $app.PROVIDER:NAME and others. Pod, container, "
                "namespace and node are always recorded."),
      MakeField("trackers", &T::trackers, TrackersSchema(),
                "Record only events of these processes and users."),
      MakeField("buffer", &T::buffer, BufferSchema(), "The buffers in shared memory.",
                kShowDefault),
      MakeField("output", &T::output, OutputSchema(), "How events leave the buffers.",
                kShowDefault),
      MakeField("storage", &T::storage, StorageSchema(),
                "What the relay keeps of the Trace, within the limits of its administrator. Local "
                "mode keeps everything."),
      MakeField("duration", &T::duration, Duration(limits::kMinDuration, limits::kMaxDuration),
                "How long to record, such as 90s or 1h30m. Absent: until the Trace is deleted or, "
                "in local mode, until the program ends."),
      MakeField("paused", &T::paused, Bool(),
                "While true, no event is recorded, and the session stays ready.", kShowDefault)};
}

TypePtr<TraceSpec> MakeSpec(std::string name, std::vector<Field<TraceSpec>> whom_and_what,
                            std::vector<Rule<TraceSpec>> rules) {
  std::ranges::move(HowFields(), std::back_inserter(whom_and_what));
  return Object<TraceSpec>(std::move(name), std::move(whom_and_what), std::move(rules));
}

TypePtr<Trace> MakeTrace(std::string name, TypePtr<TraceSpec> spec) {
  using T = Trace;
  // MetadataSchema() and the others are never destroyed, so these pointers own nothing.
  const auto metadata = TypePtr<Metadata>(std::shared_ptr<const void>(), &MetadataSchema());
  return Object<T>(
      std::move(name),
      {IgnoredField<T>("apiVersion", /*hidden=*/false), IgnoredField<T>("kind", /*hidden=*/false),
       MakeField("metadata", &T::metadata, metadata, "Kubernetes' metadata.", kRequired),
       MakeField("spec", &T::spec, std::move(spec), "What to record.", kRequired),
       MakeField("status", &T::status, StatusSchema(), "Observed state; written by weft.")});
}

}  // namespace

TypePtr<TraceSpec> SpecSchema() {
  using T = TraceSpec;
  static const TypePtr<T>& schema = *new TypePtr<T>(MakeSpec(
      "TraceSpec",
      {MakeField("pods", &T::pods, PodsSchema(),
                 "Pods to trace, in the Trace's namespace. Absent: all pods. Local mode traces the "
                 "program that it starts, and ignores this field."),
       MakeField("user", &T::user, UserSchema(), "User-space events to record."),
       MakeField("kernel", &T::kernel, KernelSchema(),
                 "Kernel events to record that concern these pods.")},
      SpecRules()));
  return schema;
}

TypePtr<TraceSpec> ClusterSpecSchema() {
  using T = TraceSpec;
  static const TypePtr<T>& schema = *new TypePtr<T>(
      MakeSpec("ClusterTraceSpec",
               {MakeField("nodes", &T::nodes, NodesSchema(), "Nodes to record. Absent: all nodes."),
                MakeField("kernel", &T::kernel, KernelSchema(),
                          "Kernel events to record, of all tasks on the nodes.")},
               ClusterSpecRules()));
  return schema;
}

const Type<Metadata>& MetadataSchema() {
  using T = Metadata;
  const auto name =
      String({.type_name = "name", .max = limits::kTraceName, .check = CheckTraceName});
  const auto name_space =
      String({.type_name = "name", .max = limits::kDnsLabel, .check = CheckDnsLabel});
  const auto text =
      String({.max = limits::kDocumentBytes, .check = CheckAnyText, .may_be_empty = true});
  const auto time = String({.type_name = "time", .max = 64, .check = CheckTime});
  const StringMapPtr labels = StringMap({.check_key = CheckLabelKey}, LabelValue());
  const StringMapPtr annotations =
      StringMap({.max_bytes = limits::kAnnotationBytes, .check_key = CheckLabelKey}, text);
  static const TypePtr<T>& schema = *new TypePtr<T>(Object<T>(
      "ObjectMeta",
      {MakeField("name", &T::name, name, "Name of the Trace, unique in its namespace.", kRequired),
       MakeField("namespace", &T::name_space, name_space,
                 "Namespace of the Trace and of the pods it selects."),
       MakeField("labels", &T::labels, labels, "Labels of the Trace itself."),
       MakeField("annotations", &T::annotations, annotations, "Annotations of the Trace."),
       MakeField("uid", &T::uid, text, "", kHidden),
       MakeField("resourceVersion", &T::resource_version, text, "", kHidden),
       MakeField("generation", &T::generation, Int<std::int64_t>(0, INT64_MAX), "", kHidden),
       MakeField("creationTimestamp", &T::creation_timestamp, time, "", kHidden),
       MakeField("deletionTimestamp", &T::deletion_timestamp, time, "", kHidden),
       MakeField("finalizers", &T::finalizers, ListOf(text, limits::kConditions), "", kHidden),
       IgnoredField<T>("deletionGracePeriodSeconds"), IgnoredField<T>("generateName"),
       IgnoredField<T>("managedFields"), IgnoredField<T>("ownerReferences"),
       IgnoredField<T>("selfLink")}));
  return *schema;
}

const Type<Trace>& TraceSchema() {
  static const TypePtr<Trace>& schema = *new TypePtr<Trace>(MakeTrace("Trace", SpecSchema()));
  return *schema;
}

const Type<Trace>& ClusterTraceSchema() {
  static const TypePtr<Trace>& schema =
      *new TypePtr<Trace>(MakeTrace("ClusterTrace", ClusterSpecSchema()));
  return *schema;
}

}  // namespace weft::api
