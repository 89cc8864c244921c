// SPDX-License-Identifier: Apache-2.0
// See consumer_link.h.
#include "node-agent/agent/consumers/consumer_link.h"

#include <sys/mman.h>

#include <nlohmann/json.hpp>

#include "lib/base/copy_fd.h"
#include "lib/base/kill_point.h"
#include "node-agent/agent/base/limits.h"
#include "node-agent/agent/session/session.h"

namespace weft::agent {
namespace {

using Json = nlohmann::json;

}  // namespace

Result<ConsumerLink> ConsumerLink::Begin(std::string name) {
  ConsumerLink link;
  link.name_ = std::move(name);
  link.journal_.reset(memfd_create("weft-journal", MFD_CLOEXEC));
  if (!link.journal_) return FailErrno("memfd_create");
  link.realtime_offset_ns_ = RealtimeOffset();
  link.clock_uuid_ = BootUuid();
  return link;
}

Result<ConsumerLink> ConsumerLink::Restore(std::string name, const std::string& meta, UniqueFd fd) {
  ConsumerLink link;
  link.name_ = std::move(name);
  link.journal_ = std::move(fd);
  const Json json = Json::parse(meta, nullptr, false);
  try {
    json.at("realtime_offset_ns").get_to(link.realtime_offset_ns_);
    json.at("clock_uuid").get_to(link.clock_uuid_);
  } catch (const Json::exception& e) {
    return Fail(ErrorCode::kCorrupt, "journal of " + link.name_ + ": " + e.what());
  }
  return link;
}

ipc::Keep ConsumerLink::ToKeep() const {
  const Json meta = {{"realtime_offset_ns", realtime_offset_ns_}, {"clock_uuid", clock_uuid_}};
  return {kJournalKey + name_, meta.dump(), CopyFd(journal_)};
}

void ConsumerLink::Connect(UniqueFd socket) {
  Close();
  ++connections_;
  connection_ = ipc::Connection(std::move(socket));
}

void ConsumerLink::Close() {
  waiting_.clear();
  greeted_ = false;
  connection_.Close();
}

void ConsumerLink::Tell(Make make) {
  if (!greeted_ || waiting_.size() >= kMaxConsumerBacklog) return;
  waiting_.push_back(std::move(make));
}

void ConsumerLink::Pump() {
  while (!waiting_.empty() && connection_.valid() && !connection_.wants_write()) {
    const Make make = std::move(waiting_.front());
    waiting_.pop_front();
    ipc::Message message = make();
    const bool is_ring = std::holds_alternative<ipc::Ring>(message);
    if (const Status sent = connection_.Send(std::move(message)); !sent) return;
    if (is_ring) KillPoint("ring_told");
  }
}

ipc::Configure ConsumerLink::Configuration(uint32_t clock, uint32_t slot_count) const {
  return {.journal = CopyFd(journal_),
          .clock = clock,
          .slot_count = slot_count,
          .realtime_offset_ns = realtime_offset_ns_,
          .clock_uuid = clock_uuid_};
}

}  // namespace weft::agent
