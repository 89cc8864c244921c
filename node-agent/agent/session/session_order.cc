// SPDX-License-Identifier: Apache-2.0
// Sessions of a cluster: what a TraceSession asks for, channel by channel. See session.h.
#include <algorithm>
#include <charconv>
#include <iterator>

#include "lib/api/event_counts.h"
#include "node-agent/agent/session/session.h"

namespace weft::agent {
namespace {

constexpr const char* kTracePath = "ust/64-bit";
constexpr const char* kCtfVersion = "1.8";

// "weft-relay-0.weft-relay.weft.svc:4460"; the form is the API's, checked when it was parsed.
Status SplitAddress(const std::string& address, std::string& host, uint16_t& port) {
  const size_t colon = address.rfind(':');
  const char* end = address.data() + address.size();
  if (colon == std::string::npos || colon == 0 ||
      std::from_chars(address.data() + colon + 1, end, port).ptr != end || port == 0)
    return Fail(ErrorCode::kInvalid, "relay \"" + address + "\": not host:port");
  host = address.substr(0, colon);
  if (host.starts_with('[') && host.ends_with(']')) host = host.substr(1, host.size() - 2);
  return {};
}

Result<ipc::RelayAddress> ParseRelay(const api::RelayEndpoints& from) {
  ipc::RelayAddress relay;
  std::string data_host;
  WEFT_TRY(SplitAddress(from.control, relay.host, relay.control_port));
  WEFT_TRY(SplitAddress(from.data, data_host, relay.data_port));
  if (data_host != relay.host)
    return Fail(ErrorCode::kUnsupported, "the relay's two addresses are of different hosts");
  return relay;
}

// Both compare whole structs, after members that may differ were made equal. A member that is added
// later therefore counts as a difference until it is named here.

// Do rings that were made for one of these channels serve the other? Their rules may differ.
bool SameLayout(control::ChannelSpec a, const control::ChannelSpec& b) {
  a.id = b.id;
  a.flags = b.flags;
  a.vpids = b.vpids;
  a.vuids = b.vuids;
  a.rules = b.rules;
  return a == b;
}

// Does a kernel channel that was made for one of these serve the other? weft.ko takes events once.
bool SameKernelPart(api::TraceSpec a, const api::TraceSpec& b) {
  a.nodes = b.nodes;
  a.pods = b.pods;
  a.user = b.user;
  a.storage = b.storage;  // the relay's
  a.duration = b.duration;
  a.paused = b.paused;
  a.kernel.statedump_request = b.kernel.statedump_request;
  return a == b;
}

// Returns the counts that a TraceSession's status reported. Events that were in flight then count
// as lost (node/restarted): their channels are gone, and new channels do not have them.
ipc::ChannelCounts CountsOf(api::EventCounts reported) {
  api::LoseInFlight(reported, "node", "restarted");
  ipc::ChannelCounts counts;
  counts.recorded = static_cast<uint64_t>(reported.recorded);
  counts.delivered = static_cast<uint64_t>(reported.delivered);
  counts.overwritten = static_cast<uint64_t>(reported.overwritten);
  for (const api::EventLoss& loss : reported.reasons) {
    const auto count = static_cast<uint64_t>(loss.count);
    if (loss.stage != "ring")
      counts.lost[loss.stage + "/" + loss.reason] += count;
    else if (loss.reason != "overwritten")
      counts.discarded[loss.reason] += count;
  }
  return counts;
}

}  // namespace

Result<Session> Session::FromOrder(api::TraceSession order) {
  Session session;
  session.created_ = CreatedNow();
  session.ctf_version_ = kCtfVersion;
  WEFT_ASSIGN(session.relay, ParseRelay(order.spec.relay));
  session.order = std::make_unique<api::TraceSession>(std::move(order));
  WEFT_TRY(session.CompileOrder());
  // Nothing, unless the node's state was lost. A session that is loaded has its own counts.
  session.retired = CountsOf(session.order->status.events);
  return session;
}

Status Session::CompileOrder() {
  api::Trace trace;
  trace.metadata.name = order->spec.trace_name;
  trace.metadata.name_space = order->metadata.name_space;
  trace.spec = order->spec.record;
  const CompileContext context{.created = created_,
                               .ctf_version = ctf_version_,
                               .of_tenant = !is_cluster_wide(),
                               .why_no_functions = WhyNoFunctions()};
  const auto complete = [this](ipc::ChannelDefinition& definition) {
    definition.relay = relay;
    definition.trace_uid = order->spec.trace_uid;
    definition.node = order->spec.node_name;
    definition.kubernetes_namespace = order->metadata.name_space;
  };
  // A channel of an earlier version of the order may be there, whatever this one records.
  WEFT_ASSIGN(kernel_prototype_, CompileKernelLayout(trace, context));
  complete(kernel_prototype_.definition);
  if (trace.spec.RecordsKernel()) kernel_notices = kernel_prototype_.notices;
  if (!trace.spec.RecordsUser() && trace.spec.RecordsKernel()) return {};
  WEFT_ASSIGN(prototype_, CompileUserChannel(trace, context));
  complete(prototype_.definition);
  prototype_.definition.trace_path = kTracePath;
  notices = prototype_.notices;
  // What the control area cannot hold is refused now.
  control::ChannelSpec trial = prototype_.spec;
  trial.id = 1;
  WEFT_TRY(control::EncodeRuleset(1, {trial}));
  return {};
}

SessionChannel& Session::AddChannel(const Container& container) {
  SessionChannel& channel = channels.emplace_back();
  channel.container = container.key;
  channel.consumer = container.name_space;
  channel.spec = prototype_.spec;
  channel.definition = prototype_.definition;
  channel.spec.id = channel.definition.id = FirstChannelId();
  channel.definition.trace_uuid = RandomUuid();
  channel.definition.hostname = container.pod;
  channel.definition.programs = container.name;
  channel.definition.kubernetes_namespace = container.name_space;
  channel.definition.pod = container.pod;
  channel.definition.pod_uid = container.pod_uid;
  channel.definition.container = container.name;
  channel.FitIntoMemory(container.memory_limit);
  channel.paused = order->spec.record.paused;
  channel.snapshot = order->spec.record.output.mode == api::OutputMode::kSnapshot;
  return channel;
}

SessionChannel& Session::AddEmptyKernelChannel() {
  SessionChannel& channel = channels.emplace_back();
  channel.container = kKernelKey;
  channel.consumer = order->metadata.name_space;
  channel.spec = kernel_prototype_.spec;
  channel.definition = kernel_prototype_.definition;
  channel.trackers = kernel_prototype_.trackers;
  channel.tells_state = order->spec.record.kernel.statedump;
  channel.spec.id = channel.definition.id = FirstChannelId();
  channel.definition.trace_uuid = RandomUuid();
  channel.definition.hostname = order->spec.node_name;
  channel.paused = order->spec.record.paused;
  channel.snapshot = order->spec.record.output.mode == api::OutputMode::kSnapshot;
  return channel;
}

SessionChannel& Session::AddKernelChannel(CompiledChannel events) {
  kernel_notices = kernel_prototype_.notices;
  std::ranges::move(events.notices, std::back_inserter(kernel_notices));
  SessionChannel& channel = AddEmptyKernelChannel();
  channel.kernel_events = std::move(events.kernel_events);
  return channel;
}

SessionChannel* Session::KernelChannel() {
  const auto is = [](const SessionChannel& c) {
    return c.of_kernel() && !c.outdated && c.phase <= ChannelPhase::kOn;
  };
  const auto found = std::ranges::find_if(channels, is);
  return found == channels.end() ? nullptr : &*found;
}

const SessionChannel* Session::KernelChannel() const {
  return const_cast<Session*>(this)->KernelChannel();
}

bool Session::Change(Session&& newer) {
  const bool same_relay = relay == newer.relay;
  const bool fits = SameLayout(prototype_.spec, newer.prototype_.spec) && same_relay;
  const bool kernel_fits =
      same_relay && SameKernelPart(order->spec.record, newer.order->spec.record);
  order = std::move(newer.order);
  notices = std::move(newer.notices);
  if (!kernel_fits) kernel_notices = std::move(newer.kernel_notices);
  relay = newer.relay;
  prototype_ = std::move(newer.prototype_);
  kernel_prototype_ = std::move(newer.kernel_prototype_);
  for (SessionChannel& channel : channels) {
    if (!channel.of_kernel()) continue;
    channel.outdated = channel.outdated || !kernel_fits;
    channel.paused = order->spec.record.paused;
  }
  if (!fits) return false;
  for (SessionChannel& channel : channels) {
    if (channel.of_kernel()) continue;
    const uint64_t id = channel.spec.id;
    channel.spec = prototype_.spec;
    channel.spec.id = id;
    channel.FitIntoMemory(channel.memory_limit);
    channel.paused = order->spec.record.paused;
  }
  return true;
}

void Session::RetireDrained() {
  std::erase_if(channels, [this](const SessionChannel& channel) {
    if (channel.phase != ChannelPhase::kDrained) return false;
    Add(retired, channel.Counts());
    retired_ids.insert(channel.definition.id);
    return true;
  });
}

ipc::ChannelCounts Session::Counts() const {
  ipc::ChannelCounts sum = retired;
  for (const SessionChannel& channel : channels) Add(sum, channel.Counts());
  return sum;
}

}  // namespace weft::agent
