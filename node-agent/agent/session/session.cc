// SPDX-License-Identifier: Apache-2.0
// See session.h; session_order.cc has what a TraceSession asks for, session_file.cc the disk.
#include "node-agent/agent/session/session.h"

#include <sys/random.h>
#include <sys/utsname.h>

#include <algorithm>
#include <ctime>
#include <fstream>

#include "lib/api/filters.h"
#include "lib/api/parse.h"
#include "lib/base/host_clock.h"
#include "node-agent/agent/base/clock_choice.h"
#include "node-agent/agent/base/limits.h"

namespace weft::agent {
namespace {

constexpr int64_t kNsPerSecond = 1'000'000'000;

int64_t Now(clockid_t clock) {
  timespec t{};
  clock_gettime(clock, &t);
  return t.tv_sec * kNsPerSecond + t.tv_nsec;
}

std::string Hostname() {
  utsname names{};
  uname(&names);
  return names.nodename;
}

Result<CompiledChannel> CompileForThisKernel(const api::Trace& trace, const CompileContext& context,
                                             const Session::KernelProbe& probe_kernel) {
  const auto support = probe_kernel();
  if (!support) {
    return Fail(ErrorCode::kUnsupported,
                "spec.kernel needs root and the kernel module weft.ko: " + support.error().message);
  }
  return CompileKernelChannel(trace, context, support->features);
}

// Compiles the user's part and the kernel's. If this machine cannot do the kernel's part, the
// user's part goes on.
Result<std::vector<CompiledChannel>> CompileChannels(const api::Trace& trace,
                                                     const CompileContext& context,
                                                     const Session::KernelProbe& probe_kernel,
                                                     std::vector<std::string>& notices) {
  std::vector<CompiledChannel> channels;
  const bool has_kernel = trace.spec.RecordsKernel();
  if (trace.spec.RecordsUser() || !has_kernel) {
    WEFT_ASSIGN(CompiledChannel user, CompileUserChannel(trace, context));
    channels.push_back(std::move(user));
  }
  if (!has_kernel) return channels;
  auto of_kernel = CompileForThisKernel(trace, context, probe_kernel);
  if (of_kernel) {
    channels.push_back(std::move(*of_kernel));
    return channels;
  }
  const std::string why = "Trace \"" + trace.metadata.name + "\": " + of_kernel.error().message;
  if (channels.empty() || of_kernel.error().code == ErrorCode::kInvalid)
    return Fail(of_kernel.error().code, why);
  notices.push_back(why + ": nothing of the kernel is recorded");
  return channels;
}

}  // namespace

std::string CreatedNow() {
  const time_t now = time(nullptr);
  tm parts{};
  gmtime_r(&now, &parts);
  char text[32];
  strftime(text, sizeof(text), "%Y%m%dT%H%M%SZ", &parts);
  return text;
}

uint64_t FirstChannelId() {
  uint64_t random = 0;
  if (getrandom(&random, sizeof(random), 0) != ssize_t{sizeof(random)})
    random = static_cast<uint64_t>(Now(CLOCK_REALTIME));
  return (random << 16 | 1) & INT64_MAX;
}

void Add(ipc::ChannelCounts& to, const ipc::ChannelCounts& from) {
  ForEachField(to, from, [](const auto&, auto& sum, const auto& more) {
    if constexpr (std::is_arithmetic_v<std::remove_cvref_t<decltype(more)>>)
      sum += more;
    else
      for (const auto& [reason, count] : more) sum[reason] += count;
  });
}

Uuid BootUuid() {
  std::ifstream in("/proc/sys/kernel/random/boot_id");
  std::string text;
  std::getline(in, text);
  return ParseUuid(text).value_or(Uuid{});
}

// Takes the shortest of several attempts, since another process may run between two reads of
// clocks.
int64_t RealtimeOffset() {
  constexpr int kTries = 16;
  int64_t offset = 0;
  uint64_t shortest = UINT64_MAX;
  for (int i = 0; i < kTries; ++i) {
    const uint64_t before = HostMonotonicNs();
    const int64_t real = Now(CLOCK_REALTIME);
    const uint64_t length = HostMonotonicNs() - before;
    if (length >= shortest) continue;
    shortest = length;
    offset = real - static_cast<int64_t>(before + length / 2);
  }
  return offset;
}

int64_t MonotonicNow() { return Now(CLOCK_MONOTONIC); }

ipc::ChannelCounts SessionChannel::Counts() const {
  ipc::ChannelCounts sum = reported;
  Add(sum, own);
  return sum;
}

void SessionChannel::FitIntoMemory(uint64_t limit) {
  memory_limit = limit;
  asked = {spec.subbuf_shift, spec.subbufs_shift};
  spec.memory_budget = RingBudget(limit);
  const RingSize granted = GrantRings(asked, spec.memory_budget, PossibleCpus("/sys"));
  spec.subbuf_shift = definition.subbuf_shift = granted.subbuf_shift;
  spec.subbufs_shift = definition.subbufs_shift = granted.subbufs_shift;
}

Result<Session> Session::Create(const ipc::CreateSession& command, const std::string& traces,
                                const KernelProbe& probe_kernel) {
  WEFT_ASSIGN(Session session, Compile(command, traces, CreatedNow(), probe_kernel));
  uint64_t id = FirstChannelId();
  for (SessionChannel& channel : session.channels) {
    channel.spec.id = channel.definition.id = id++;
    channel.definition.trace_uuid = RandomUuid();
  }
  return session;
}

Result<Session> Session::Compile(const ipc::CreateSession& command, const std::string& traces,
                                 const std::string& created, const KernelProbe& probe_kernel) {
  auto parsed = api::ParseTraces(command.file, traces, api::CheckingFilters());
  if (!parsed) return Fail(ErrorCode::kInvalid, api::ToString(parsed.error()));
  if (command.ctf_version != "1.8" && command.ctf_version != "2")
    return Fail(ErrorCode::kInvalid, "CTF version \"" + command.ctf_version + "\": not 1.8 or 2");
  CompileContext context{.hostname = Hostname(),
                         .created = created,
                         .programs = command.programs,
                         .ctf_version = command.ctf_version,
                         .uid = command.uid,
                         .several_traces = parsed->size() > 1,
                         .why_no_functions = WhyNoFunctions(),
                         .object_root = "/"};
  Session session;
  session.traces_ = traces;
  session.file_ = command.file;
  session.output = command.output;
  session.relay = command.relay;
  session.ctf_version_ = command.ctf_version;
  session.programs_ = command.programs;
  session.created_ = created;
  session.uid_ = command.uid;
  for (const api::Trace& trace : *parsed) {
    for (const SessionChannel& other : session.channels)
      if (other.definition.trace == trace.metadata.name)
        return Fail(ErrorCode::kInvalid,
                    command.file + ": two Traces are called \"" + trace.metadata.name + "\"");
    WEFT_ASSIGN(std::vector<CompiledChannel> channels,
                CompileChannels(trace, context, probe_kernel, session.notices));
    for (CompiledChannel& compiled : channels) {
      SessionChannel& channel = session.channels.emplace_back();
      channel.consumer = kConsumerName;
      channel.spec = std::move(compiled.spec);
      channel.definition = std::move(compiled.definition);
      channel.definition.relay = command.relay;
      channel.functions = std::move(compiled.functions);
      channel.kernel_events = std::move(compiled.kernel_events);
      channel.trackers = std::move(compiled.trackers);
      channel.tells_state = channel.of_kernel() && trace.spec.kernel.statedump;
      channel.paused = trace.spec.paused;
      channel.snapshot = trace.spec.output.mode == api::OutputMode::kSnapshot;
      channel.duration = trace.spec.duration;
      std::ranges::move(compiled.notices, std::back_inserter(session.notices));
    }
  }
  // What the control area cannot hold is refused now, and not at START.
  std::vector<control::ChannelSpec> specs;
  for (const SessionChannel& channel : session.channels) {
    if (channel.of_kernel()) continue;
    specs.push_back(channel.spec);
    specs.back().id = specs.size();
  }
  WEFT_TRY(control::EncodeRuleset(1, specs));
  return session;
}

SessionChannel* Session::Find(uint64_t channel_id) {
  auto it = std::ranges::find_if(
      channels, [&](const SessionChannel& c) { return c.definition.id == channel_id; });
  return it == channels.end() ? nullptr : &*it;
}

const SessionChannel* Session::Find(uint64_t channel_id) const {
  auto it = std::ranges::find_if(
      channels, [&](const SessionChannel& c) { return c.definition.id == channel_id; });
  return it == channels.end() ? nullptr : &*it;
}

std::vector<control::ChannelSpec> Session::Published(const std::string& container) const {
  std::vector<control::ChannelSpec> specs;
  for (const SessionChannel& channel : channels)
    if (channel.container == container && channel.phase == ChannelPhase::kOn && !channel.paused &&
        !channel.of_kernel())
      specs.push_back(channel.spec);
  return specs;
}

bool Session::RecordsKernel() const {
  return std::ranges::any_of(channels, [](const auto& channel) { return channel.of_kernel(); });
}

ipc::Phase Session::phase() const {
  const auto all = [&](auto is) { return std::ranges::all_of(channels, is); };
  const auto any = [&](auto is) { return std::ranges::any_of(channels, is); };
  if (channels.empty()) return ipc::Phase::kNone;
  if (all([](const auto& c) { return c.phase == ChannelPhase::kDrained; }))
    return ipc::Phase::kStopped;
  if (all([](const auto& c) { return c.phase == ChannelPhase::kDefined; }))
    return ipc::Phase::kCreated;
  if (any([](const auto& c) { return c.phase == ChannelPhase::kOn; }))
    return all([](const auto& c) { return c.ready; }) ? ipc::Phase::kReady : ipc::Phase::kStarting;
  return ipc::Phase::kStopping;
}

ipc::SessionState Session::State() const {
  ipc::SessionState state;
  state.phase = phase();
  state.output = relay.host.empty()
                     ? output
                     : "relay " + relay.host + ":" + std::to_string(relay.control_port);
  state.programs = programs_;
  state.cgroup = cgroup;
  for (const SessionChannel& channel : channels)
    state.traces.push_back(
        {channel.definition.trace, channel.definition.trace_path, channel.Counts()});
  state.notices = notices;
  return state;
}

}  // namespace weft::agent
