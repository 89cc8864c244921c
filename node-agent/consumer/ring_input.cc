// SPDX-License-Identifier: Apache-2.0
// See ring_input.h.
#include "node-agent/consumer/ring_input.h"

#include <algorithm>

namespace weft::consumer {

Status RingInput::Restore(const RingRecord& record) {
  phase_ = record.phase;
  corrupt_recorded_ = record.corrupt_recorded;
  counted = phase_ == RingPhase::kCorrupt;  // in the totals of the same commit
  for (const SlotRecord& slot : record.slots) {
    if (slot.slot >= cursors_.size()) return Fail(ErrorCode::kCorrupt, "journal: a ring's slot");
    auto cursor = std::make_unique<Cursor>(*this, set_, slot.slot);
    WEFT_TRY(cursor->reader.Resume(slot.state));
    cursor->sealed = cursor->acknowledged = slot.state.position;
    cursor->discarded = cursor->seen = slot.discarded;
    cursor->overwritten = slot.overwritten;
    cursor->last_cpu = slot.last_cpu;
    cursors_[slot.slot] = std::move(cursor);
  }
  return {};
}

Status RingInput::RestoreFromTails() {
  for (uint32_t slot = 0; slot < cursors_.size(); slot++) {
    if (set_.LoadTail(slot) == 0) continue;
    cursors_[slot] = std::make_unique<Cursor>(*this, set_, slot);
    WEFT_TRY(cursors_[slot]->reader.ResumeAtTail());
    cursors_[slot]->sealed = cursors_[slot]->acknowledged = cursors_[slot]->reader.position();
  }
  return {};
}

bool RingInput::Look() {
  for (uint32_t slot = 0; slot < cursors_.size() && active(); slot++) {
    auto& cursor = cursors_[slot];
    if (cursor == nullptr) {
      const uint64_t head = set_.LoadHead(slot);
      // A slot may have discarded events and no others.
      if ((head == 0 || head == WEFT_HEAD_INITIAL) && set_.LoadDiscarded(slot) == DiscardCounts{}) {
        continue;
      }
      cursor = std::make_unique<Cursor>(*this, set_, slot);
    }
    if (auto looked = cursor->reader.Look(); !looked) GiveUp(looked.error().message);
  }
  return active();
}

Classified RingInput::Classify(uint16_t event, const FindClass& find) {
  if (event < events_.size() && events_[event].known) return events_[event];
  const auto sink = [&](uint16_t id, Bytes description) -> Status {
    if (id >= events_.size()) events_.resize(size_t{id} + 1);
    const Classified found = find(description);
    if (events_[id].known && events_[id].event != found.event) {
      return Fail(ErrorCode::kCorrupt, "descriptions: one id, two events");
    }
    events_[id] = found;
    return {};
  };
  // Committed before the record that names it, so it is there now; each poll is bounded and takes
  // something, so this ends.
  for (;;) {
    auto more = descriptions_.Poll(sink);
    if (!more) GiveUp(more.error().message);
    if (!more || !*more) break;
  }
  return event < events_.size() ? events_[event] : Classified{};
}

void RingInput::GiveUp(const std::string& why, LostReason reason) {
  if (!active()) return;
  lost_as_ = reason;
  phase_ = RingPhase::kCorrupt;
  why_ = why;
  for (const auto& cursor : cursors_) {
    if (cursor != nullptr) corrupt_recorded_ += BehindHead(*cursor);
  }
}

// Records between the reader and what head says; 0 where that cannot be true.
uint64_t RingInput::BehindHead(const Cursor& cursor) const {
  const uint64_t committed = cursor.reader.CountCommitted();
  const uint64_t accounted = cursor.reader.state().accounted;
  const uint64_t most = set_.geometry().slot_bytes() / sizeof(weft_record);
  if (committed < accounted) return 0;
  // In overwrite mode the writer may be any number of rounds ahead.
  if (committed - accounted > most && !set_.geometry().overwrite()) return 0;
  return committed - accounted;
}

bool RingInput::stale() const {
  return std::any_of(cursors_.begin(), cursors_.end(),
                     [](const auto& c) { return c != nullptr && c->reader.stale(); });
}

bool RingInput::at_end() const {
  for (const auto& cursor : cursors_) {
    if (cursor != nullptr && cursor->reader.backlog() > 0) return false;
  }
  return true;
}

uint64_t RingInput::lock_time() const {
  const uint32_t slot = set_.geometry().slot_count - 1;
  if (cursors_[slot] == nullptr || set_.LoadLock(slot) == 0) return 0;
  return set_.LoadLastTime(slot);
}

uint64_t RingInput::recorded() const {
  uint64_t sum = corrupt_recorded_;
  for (const auto& cursor : cursors_) {
    if (cursor == nullptr) continue;
    sum += cursor->reader.state().accounted - cursor->reader.state().skipped;
    if (active() && !cursor->reader.skips()) sum += BehindHead(*cursor);
  }
  return sum;
}

uint64_t RingInput::overwritten() const {
  uint64_t sum = 0;
  for (const auto& cursor : cursors_) {
    if (cursor != nullptr) sum += cursor->reader.state().overwritten;
  }
  return sum;
}

DiscardCounts RingInput::discarded() const {
  DiscardCounts sum{};
  for (const auto& cursor : cursors_) {
    if (cursor == nullptr) continue;
    for (size_t i = 0; i < sum.size(); i++) sum[i] += cursor->seen[i];
  }
  return sum;
}

RingRecord RingInput::Record() const {
  RingRecord record{.key = set_.key(),
                    .instance = instance_,
                    .phase = phase_,
                    .corrupt_recorded = corrupt_recorded_};
  for (const auto& cursor : cursors_) {
    if (cursor == nullptr) continue;
    record.slots.push_back({.slot = cursor->reader.slot(),
                            .last_cpu = cursor->last_cpu,
                            .state = cursor->reader.state(),
                            .discarded = cursor->discarded,
                            .overwritten = cursor->overwritten});
  }
  return record;
}

void RingInput::Seal() {
  ended_at_seal_ = !active();
  for (const auto& cursor : cursors_) {
    if (cursor == nullptr) continue;
    cursor->sealed = cursor->reader.position();
    if (cursor->rises > 0) ended_at_seal_ = false;
  }
}

bool RingInput::Acknowledge(std::vector<uint32_t>& went_round) {
  for (const auto& cursor : cursors_) {
    if (cursor == nullptr || cursor->acknowledged == cursor->sealed) continue;
    cursor->acknowledged = cursor->sealed;
    set_.StoreTail(cursor->reader.slot(), cursor->acknowledged);
    if (cursor->went_round || cursor->acknowledged < set_.geometry().slot_bytes()) continue;
    cursor->went_round = true;
    went_round.push_back(cursor->reader.slot());
  }
  return ended_at_seal_;
}

}  // namespace weft::consumer
