// SPDX-License-Identifier: Apache-2.0
// See consumer_link.h.
#include "node-agent/agent/consumers/consumer_link.h"

#include "lib/base/copy_fd.h"
#include "lib/base/kill_point.h"
#include "node-agent/agent/base/limits.h"

namespace weft::agent {

ipc::Keep ConsumerLink::ToKeep() const {
  return {kJournalKey + name_, journal_.note.Text(), CopyFd(journal_.fd)};
}

void ConsumerLink::Connect(UniqueFd socket, uint64_t number) {
  Close();
  connection_number_ = number;
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
  return {.journal = CopyFd(journal_.fd),
          .clock = clock,
          .slot_count = slot_count,
          .realtime_offset_ns = journal_.note.realtime_offset_ns,
          .clock_uuid = journal_.note.clock_uuid};
}

}  // namespace weft::agent
