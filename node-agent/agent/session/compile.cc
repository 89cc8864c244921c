// SPDX-License-Identifier: Apache-2.0
// See compile.h.
#include "node-agent/agent/session/compile.h"

#include <algorithm>
#include <bit>
#include <set>

#include "lib/abi/context.h"
#include "lib/api/context.h"
#include "lib/api/filters.h"
#include "lib/api/function_args.h"
#include "lib/api/function_sets.h"
#include "lib/event/description.h"
#include "lib/event/filter_compiler.h"
#include "lib/event/match.h"
#include "node-agent/agent/session/perf_counters.h"
#include "node-agent/hooks/cpp_names.h"
#include "node-agent/hooks/event_layout.h"

namespace weft::agent {
namespace {

constexpr std::string_view kPerfPrefix = "perf:thread:";
constexpr std::string_view kPerfCpuPrefix = "perf:cpu:";
constexpr const char* kStatedumpPattern = "lttng_ust_statedump:*";
// The events that libweft.so emits (ust-injector/preload/statedump.h).
constexpr const char* kStatedumpEvents[] = {
    "lttng_ust_statedump:start",    "lttng_ust_statedump:procname", "lttng_ust_statedump:bin_info",
    "lttng_ust_statedump:build_id", "lttng_ust_statedump:end",
};

enum class Domain { kUser, kKernel, kTenantsKernel };

std::unexpected<Error> NotOf(const std::string& name, Domain domain) {
  return Fail(ErrorCode::kUnsupported,
              "context \"" + name + "\": " +
                  (domain == Domain::kUser ? "is the kernel's: not recorded for user-space events"
                                           : "is not recorded for kernel events"));
}

// Compiles perf:thread:NAME and perf:cpu:NAME.
Result<control::ContextSpec> CompileCounter(const std::string& name, std::string_view prefix,
                                            uint16_t id) {
  control::ContextSpec spec{.id = id, .name = name.substr(prefix.size())};
  const auto counter = FindPerfCounter(spec.name);
  if (!counter) return Fail(ErrorCode::kInvalid, "context \"" + name + "\": no such perf counter");
  spec.perf_type = counter->type;
  spec.perf_config = counter->config;
  return spec;
}

const weft_context_info* FindContext(const std::string& name) {
  return weft_context_by_name(name.data(), static_cast<uint32_t>(name.size()));
}

// Numbers of the node, which are other ones in the container: a parent may be another tenant's.
bool IsOfNode(const std::string& name) {
  const weft_context_info* info = FindContext(name);
  return info != nullptr && (info->domains & WEFT_CONTEXT_NODE_WIDE) != 0 &&
         FindContext("v" + name) != nullptr;
}

Result<control::ContextSpec> CompileContextName(const std::string& name, Domain domain) {
  control::ContextSpec spec;
  const bool user_only = name.starts_with(api::kAppPrefix) || name.starts_with(kPerfPrefix);
  if (user_only && domain != Domain::kUser) return NotOf(name, domain);
  if (domain == Domain::kTenantsKernel)
    if (std::string why = WhyNotForTenants(name); !why.empty())
      return Fail(ErrorCode::kUnsupported, std::move(why));
  if (name.starts_with(api::kAppPrefix)) {
    spec.id = WEFT_CONTEXT_APP;
    spec.name = name.substr(api::kAppPrefix.size());
    return spec;
  }
  if (name.starts_with(kPerfPrefix))
    return CompileCounter(name, kPerfPrefix, WEFT_CONTEXT_PERF_THREAD);
  if (name.starts_with(kPerfCpuPrefix)) {
    if (domain == Domain::kUser) return NotOf(name, domain);
    return CompileCounter(name, kPerfCpuPrefix, WEFT_CONTEXT_PERF_CPU);
  }
  const weft_context_info* info = FindContext(name);
  const uint8_t wanted = domain == Domain::kUser ? WEFT_CONTEXT_IN_USER : WEFT_CONTEXT_IN_KERNEL;
  if (info == nullptr || (info->domains & wanted) == 0) return NotOf(name, domain);
  spec.id = info->id;
  return spec;
}

Status CompileRules(const api::TraceSpec& from, control::ChannelSpec& to) {
  for (const api::EventRule& event : from.user.events) {
    control::RuleSpec rule;
    rule.pattern = event.name;
    rule.exclusions = event.exclude;
    const auto levels = event.log_level.AdmittedLevels();
    rule.loglevel_min = levels.min;
    rule.loglevel_max = levels.max;
    WEFT_ASSIGN(rule.filter, CompileFilters(from.filter, event.filter));
    to.rules.push_back(std::move(rule));
  }
  return {};
}

// Checks what the Trace alone tells: arguments and return value may come from debug information.
Status CheckFunctionFilter(const api::FunctionRule& function, hooks::Moment moment) {
  if (function.filter.empty()) return {};
  if (const std::string why = WhyNotNamed(function, api::NamesInFilter(function.filter));
      !why.empty())
    return Fail(ErrorCode::kInvalid, "its filter " + why);
  if (std::ranges::none_of(function.args, api::IsPositional)) return {};
  api::FunctionRule all = function;
  if (!all.returns) all.returns = api::ValueType::kInt64;
  weft_event ignored{};
  WEFT_ASSIGN(const std::vector<uint8_t> bytes,
              hooks::Describe(all, function.name, moment, ignored));
  WEFT_ASSIGN(const EventDescription description, EventDescription::Parse(bytes));
  if (api::EventFilter(function.filter).Fit(description) == api::FilterFit::kTypes)
    return Fail(ErrorCode::kInvalid, "its filter compares a number with a text");
  return {};
}

// The rules of a function's events; its name may be a pattern, and then theirs are. A name of C++
// can be spelled in several ways, of which events have one.
Status CompileFunction(const api::FunctionRule& function, const std::string& filter,
                       control::ChannelSpec& to) {
  for (const hooks::Moment moment : hooks::kMoments) {
    if (!function.Records(moment)) continue;
    WEFT_TRY(CheckFunctionFilter(function, moment));
    control::RuleSpec rule;
    for (const std::string& excluded : function.exclude)
      for (const std::string& name : std::set{excluded, hooks::SpellPattern(excluded)})
        rule.exclusions.push_back(hooks::EventName(name, moment));
    WEFT_ASSIGN(rule.filter, CompileFilters(filter, function.filter));
    for (const std::string& name : std::set{function.name, hooks::SpellPattern(function.name)}) {
      rule.pattern = hooks::EventName(name, moment);
      to.rules.push_back(rule);
    }
  }
  return {};
}

// Compiles a rule. If it names a set, only those functions of the set are kept whose events have
// what the rule's filter names.
Status CompileFunctionOrSet(const api::FunctionRule& rule, const api::Trace& trace,
                            CompiledChannel& to) {
  std::string compiled;
  const size_t before = to.functions.size();
  for (const api::FunctionRule& function : ExpandSet(rule)) {
    const auto lacks = [&](hooks::Moment moment) {
      return function.Records(moment) && !WhyNotFiltered(function, moment).empty();
    };
    if (rule.set && std::ranges::any_of(hooks::kMoments, lacks)) continue;
    // A function has a rule for each of its libraries, and its events have one.
    if (!rule.set || compiled != function.name)
      WEFT_TRY(CompileFunction(function, trace.spec.filter, to.spec));
    compiled = function.name;
    to.functions.push_back({trace.metadata.name, function});
  }
  if (to.functions.size() == before)
    return Fail(ErrorCode::kInvalid, "its filter names what no function of the set has");
  return {};
}

Status CompileFunctions(const api::Trace& trace, const CompileContext& context,
                        CompiledChannel& to) {
  const api::TraceSpec& spec = trace.spec;
  if (spec.user.functions.empty()) return {};
  if (!context.why_no_functions.empty())
    return Fail(ErrorCode::kUnsupported, context.why_no_functions);
  for (const api::FunctionRule& function : spec.user.functions) {
    const std::string name =
        function.set ? "set " + std::string(NameOf(*function.set)) : function.name;
    if (auto compiled = CompileFunctionOrSet(function, trace, to); !compiled)
      return std::unexpected(std::move(compiled).error().Context(name));
  }
  to.spec.flags |= WEFT_CHANNEL_FUNCTIONS;
  return {};
}

// The state dump is recorded if a rule matches it, as in LTTng, and if the context `ip` is
// requested, since addresses say nothing without it.
void CompileStatedump(control::ChannelSpec& channel) {
  if (std::ranges::any_of(channel.contexts,
                          [](const auto& c) { return c.id == WEFT_CONTEXT_IP; })) {
    channel.rules.push_back({.pattern = kStatedumpPattern});
  }
  const bool wanted = std::ranges::any_of(channel.rules, [](const control::RuleSpec& rule) {
    return std::ranges::any_of(kStatedumpEvents, [&rule](const char* event) {
      return weft_glob_match_str(rule.pattern.c_str(), event);
    });
  });
  if (wanted) channel.flags |= WEFT_CHANNEL_STATEDUMP;
}

Status CompileContexts(const api::TraceSpec& from, Domain domain, CompiledChannel& to) {
  for (const std::string& name : from.context) {
    auto context = CompileContextName(name, domain);
    if (!context && context.error().code == ErrorCode::kUnsupported) {
      to.notices.push_back(context.error().message);
      continue;
    }
    if (!context) return std::unexpected(context.error());
    if (context->id == WEFT_CONTEXT_PERF_THREAD &&
        !IsReadable({context->perf_type, context->perf_config})) {
      to.notices.push_back("context \"" + name +
                           "\" needs an open descriptor in the program: its values are 0");
    }
    to.definition.contexts.push_back({context->id, context->name});
    to.spec.contexts.push_back(std::move(*context));
  }
  return {};
}

// Compiles trackers. No kind is replaced by another one, which would record more.
Status CompileTrackers(const api::Trackers& from, bool of_tenant, kernel::Trackers& to) {
  const struct {
    const char* name;
    weft_kernel_track_kind kind;
    const std::vector<uint32_t>& values;
  } kinds[] = {
      {"pid", WEFT_KERNEL_TRACK_PID, from.pid}, {"vpid", WEFT_KERNEL_TRACK_VPID, from.vpid},
      {"uid", WEFT_KERNEL_TRACK_UID, from.uid}, {"vuid", WEFT_KERNEL_TRACK_VUID, from.vuid},
      {"gid", WEFT_KERNEL_TRACK_GID, from.gid}, {"vgid", WEFT_KERNEL_TRACK_VGID, from.vgid}};
  for (const auto& [name, kind, values] : kinds) {
    if (values.empty()) continue;
    if (of_tenant && IsOfNode(name))
      return Fail(ErrorCode::kInvalid, std::string("spec.trackers.") + name +
                                           ": is a number of the node: a namespace has \"v" + name +
                                           "\"");
    to[kind] = values;
  }
  return {};
}

void CompileBuffer(const api::TraceSpec& spec, CompiledChannel& to) {
  const bool overwrite = spec.buffer.mode == api::BufferMode::kOverwrite ||
                         spec.output.mode == api::OutputMode::kSnapshot;
  to.spec.mode = overwrite ? WEFT_RING_OVERWRITE : WEFT_RING_DISCARD;
  to.spec.subbuf_shift = static_cast<uint32_t>(std::countr_zero(spec.buffer.size));
  to.spec.subbufs_shift = static_cast<uint32_t>(std::countr_zero(spec.buffer.count));
  to.definition.mode = to.spec.mode;
  to.definition.subbuf_shift = to.spec.subbuf_shift;
  to.definition.subbufs_shift = to.spec.subbufs_shift;
}

void Define(const api::Trace& trace, const CompileContext& context, ipc::ChannelDefinition& to) {
  to.trace = trace.metadata.name;
  if (context.several_traces) to.trace_path = trace.metadata.name + "/";
  to.ctf_version = context.ctf_version;
  to.hostname = context.hostname;
  to.created = context.created;
  to.programs = context.programs;
}

}  // namespace

Result<std::vector<uint8_t>> CompileFilters(const std::string& all, const std::string& own) {
  if (all.empty() && own.empty()) return std::vector<uint8_t>();
  const std::string text = all.empty()   ? own
                           : own.empty() ? all
                                         : "(" + all + "\n) && (" + own + "\n)";
  auto program = CompileFilter(text);
  if (!program) return std::unexpected(program.error().ToError(text));
  return std::move(*program);
}

std::string WhyNoFunctions() {
#if defined(__x86_64__)
  return "";
#else
  return "is not available on this machine, only on x86-64; use spec.kernel.userProbes";
#endif
}

std::string WhyNotForTenants(const std::string& context) {
  const std::string what = "context \"" + context + "\": ";
  if (IsOfNode(context))
    return what + "is a number of the node: not recorded for a namespace, which has \"v" + context +
           "\"";
  // A CPU's counter counts what other tenants do there; addresses of the kernel help to attack it.
  const weft_context_info* info = context.starts_with(kPerfCpuPrefix)
                                      ? weft_context_by_id(WEFT_CONTEXT_PERF_CPU)
                                      : FindContext(context);
  if (info != nullptr && (info->domains & WEFT_CONTEXT_NODE_WIDE) != 0)
    return what + "tells of the whole node: not recorded for a namespace";
  return "";
}

Result<CompiledChannel> CompileUserChannel(const api::Trace& trace, const CompileContext& context) {
  CompiledChannel out;
  const api::TraceSpec& spec = trace.spec;
  const std::string& name = trace.metadata.name;
  if (!spec.RecordsUser())
    return Fail(ErrorCode::kUnsupported, "Trace \"" + name + "\" records nothing");

  WEFT_TRY(CompileRules(spec, out.spec));
  if (auto compiled = CompileFunctions(trace, context, out); !compiled)
    return std::unexpected(
        std::move(compiled).error().Context("Trace \"" + name + "\": spec.user.functions"));
  WEFT_TRY(CompileContexts(spec, Domain::kUser, out));
  CompileStatedump(out.spec);
  out.spec.vpids = spec.trackers.vpid;
  out.spec.vuids = spec.trackers.vuid;
  CompileBuffer(spec, out);
  Define(trace, context, out.definition);
  out.definition.channel = "user";
  // Readers of LTTng's traces expect this path.
  out.definition.trace_path += "ust/uid/" + std::to_string(context.uid) + "/64-bit";
  out.definition.domain = ipc::kUserDomain;
  return out;
}

Result<CompiledChannel> CompileKernelLayout(const api::Trace& trace,
                                            const CompileContext& context) {
  CompiledChannel out;
  const Domain domain = context.of_tenant ? Domain::kTenantsKernel : Domain::kKernel;
  WEFT_TRY(CompileContexts(trace.spec, domain, out));
  WEFT_TRY(CompileTrackers(trace.spec.trackers, context.of_tenant, out.trackers));
  CompileBuffer(trace.spec, out);
  Define(trace, context, out.definition);
  out.definition.channel = "kernel";
  out.definition.trace_path += "kernel";
  out.definition.domain = ipc::kKernelDomain;
  return out;
}

Result<CompiledChannel> CompileKernelChannel(const api::Trace& trace, const CompileContext& context,
                                             uint32_t features) {
  WEFT_ASSIGN(CompiledChannel out, CompileKernelLayout(trace, context));
  WEFT_TRY(CompileKernelEvents(trace.spec,
                               {.features = features, .object_root = context.object_root}, out));
  return out;
}

}  // namespace weft::agent
