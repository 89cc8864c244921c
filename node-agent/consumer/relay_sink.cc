// SPDX-License-Identifier: Apache-2.0
// See relay_sink.h.
#include "node-agent/consumer/relay_sink.h"

#include "lib/base/uuid.h"
#include "lib/store/store.h"
#include "node-agent/consumer/agent_link.h"
#include "node-agent/consumer/limits.h"

namespace weft::consumer {
namespace {

// The namespace of traces without pods: of a machine and its user's programs.
constexpr const char* kLocalNamespace = "local";
constexpr const char* kLocalContainer = "local";
// The pod's folder for what a node's kernel recorded; no pod can have this name.
constexpr const char* kNodeFolder = "_node";

std::string Or(const std::string& name, const std::string& otherwise) {
  return name.empty() ? otherwise : name;
}

}  // namespace

RelaySink::RelaySink(std::shared_ptr<RelayLink> link, stream::TraceName name, uint64_t metadata)
    : link_(std::move(link)),
      trace_(link_->sender().AddTrace(std::move(name), metadata)),
      metadata_bytes_(metadata) {}

RelaySink::~RelaySink() { Forget(); }

void RelaySink::Forget() {
  if (trace_ != 0) link_->sender().ForgetTrace(trace_);
  trace_ = 0;
}

Status RelaySink::Append(std::string_view fragment) {
  link_->sender().WriteMetadata(trace_, metadata_bytes_, fragment);
  metadata_bytes_ += fragment.size();
  return {};
}

Status RelaySink::Overwrite(uint64_t offset, std::string_view bytes) {
  link_->sender().WriteMetadata(trace_, offset, bytes);
  return {};
}

Result<std::string> RelaySink::Read(uint64_t, size_t) const {
  return Fail(ErrorCode::kUnsupported, "metadata is at the relay");
}

Result<size_t> RelaySink::AddStream(const std::string& channel, const StreamRecord& record) {
  streams_.push_back(
      link_->sender().AddStream(trace_, channel, record.cpu, record.next_sequence, record.events));
  return streams_.size() - 1;
}

Status RelaySink::Write(size_t stream, std::span<const uint8_t> packet, uint64_t events) {
  if (!in_commit_) packet = own_.emplace_back(packet.begin(), packet.end());
  link_->sender().Put(streams_.at(stream), static_cast<uint32_t>(events), packet);
  return {};
}

void RelaySink::Start(std::function<void()> write) {
  in_commit_ = true;
  write();
  in_commit_ = false;
}

bool RelaySink::Done() {
  if (!link_->sender().all_stored(trace_)) return false;
  own_.clear();
  return true;
}

Result<bool> RelaySink::Ready() {
  if (link_->sender().opened(trace_)) return true;
  const std::string& problem = link_->problem();
  const uint64_t limit = link_->refused() ? kReadyTime : kBusyReadyTime;
  if (!problem.empty() && link_->problem_since_ns() != 0 &&
      AgentLink::NowNs() - link_->problem_since_ns() >= limit) {
    return Fail(ErrorCode::kTimeout, problem);
  }
  return false;
}

Status RelaySink::Sync() {
  stream::Sender& sender = link_->sender();
  // A relay that never came has nothing, and of a trace without events there is nothing for it.
  if (sender.ended(trace_) || (streams_.empty() && !sender.opened(trace_))) return {};
  sender.EndTrace(trace_);
  return Fail(ErrorCode::kTimeout, "the relay has not confirmed the end yet");
}

void RelaySink::Promise(uint64_t time_ns) { link_->sender().Promise(trace_, time_ns); }

void RelaySink::Report(const ipc::ChannelCounts& counts) {
  link_->sender().Report({.trace = trace_, .discarded = counts.discarded, .lost = counts.lost});
}

// --- links ---------------------------------------------------------------------------------------

Result<std::unique_ptr<TraceSink>> RelayLinks::Open(const ipc::ChannelDefinition& definition,
                                                    uint64_t metadata) {
  const ipc::RelayAddress& relay = definition.relay;
  stream::Hello hello{.node = Or(definition.node, definition.hostname),
                      .kubernetes_namespace = Or(definition.kubernetes_namespace, kLocalNamespace),
                      .trace = definition.trace,
                      .trace_uid = definition.trace_uid,
                      .ticket = ""};
  const std::string name = "relay " + relay.host + ":" + std::to_string(relay.control_port);
  const std::string key =
      name + "/" + store::TraceFolder(hello.kubernetes_namespace, hello.trace, hello.trace_uid);
  std::shared_ptr<RelayLink> link = links_[key].lock();
  if (link == nullptr) {
    // The agent finds the relay by the channel: any of this Trace's.
    const auto ask = [this, key, channel = definition.id](RelayRequest what) -> Status {
      const uint64_t request = next_request_++;
      WEFT_TRY(ask_({.request = request,
                     .channel_id = channel,
                     .data = what.data,
                     .was_refused = what.was_refused}));
      asked_[request] = {links_[key], what.data};
      return {};
    };
    const auto refused = [this, channel = definition.id](const std::string& why) {
      refused_({.channel_id = channel, .reason = why});
    };
    link = std::make_shared<RelayLink>(
        std::move(hello), name,
        RelayLink::Hooks{.ask = ask, .notice = notice_, .refused = refused});
    links_[key] = link;
  }
  const bool of_node = definition.domain == ipc::kKernelDomain && !definition.node.empty();
  return std::make_unique<RelaySink>(
      link,
      stream::TraceName{
          .pod = of_node ? kNodeFolder : Or(definition.pod, definition.hostname),
          .pod_uid = definition.pod_uid,
          .container = of_node ? definition.node : Or(definition.container, kLocalContainer),
          .uuid = FormatUuid(definition.trace_uuid),
          .path = definition.trace_path},
      metadata);
}

bool RelayLinks::Pump(uint64_t now_ns) {
  bool any = false;
  for (auto at = links_.begin(); at != links_.end();) {
    const std::shared_ptr<RelayLink> link = at->second.lock();
    if (link == nullptr) {
      at = links_.erase(at);
      continue;
    }
    any = link->Pump(now_ns) || any;
    ++at;
  }
  return any;
}

void RelayLinks::AddPolls(std::vector<pollfd>& polls) {
  for (auto& [key, weak] : links_) {
    if (const auto link = weak.lock()) link->AddPolls(polls);
  }
}

void RelayLinks::Answer(ipc::ConnectionAnswer answer, uint64_t now_ns) {
  const auto found = asked_.find(answer.request);
  if (found == asked_.end()) return;
  const Asked asked = found->second;
  asked_.erase(found);
  const auto link = asked.link.lock();
  if (link == nullptr) return;
  link->Answer(asked.data,
               {.socket = std::move(answer.fd),
                .error = std::move(answer.error),
                .late = answer.late,
                .trust = {.authorities = std::move(answer.authorities),
                          .server_name = std::move(answer.server_name)},
                .ticket = std::move(answer.ticket)},
               now_ns);
}

void RelayLinks::NewAgent() {
  asked_.clear();
  for (auto& [key, weak] : links_) {
    if (const auto link = weak.lock()) link->NewAgent();
  }
}

}  // namespace weft::consumer
