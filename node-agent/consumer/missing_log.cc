// SPDX-License-Identifier: Apache-2.0
// See missing_log.h.
#include "node-agent/consumer/missing_log.h"

#include <algorithm>

namespace weft::consumer {

void MissingLog::Look(const std::vector<std::unique_ptr<RingInput>>& rings,
                      const std::function<uint64_t()>& now) {
  const size_t known = rises_.size();
  for (const auto& input : rings) {
    for (const auto& cursor : input->cursors()) {
      if (cursor != nullptr) LookAt(*cursor);
    }
    input->looked_at = true;
  }
  const uint64_t time = std::max(now(), last_look_);
  for (size_t i = known; i < rises_.size(); i++) {
    rises_[i].until = time;
    rises_[i].after = std::min(rises_[i].after, time);
  }
  last_look_ = time;
}

void MissingLog::LookAt(Cursor& cursor) {
  const DiscardCounts discarded = cursor.input->set().LoadDiscarded(cursor.reader.slot());
  bool rose = false;
  DiscardCounts seen = cursor.seen;
  for (size_t i = 0; i < seen.size(); i++) {
    // Never falls for an honest writer; for another one nothing is added.
    if (discarded[i] <= seen[i]) continue;
    seen[i] = discarded[i];
    rose = true;
  }
  // While the ring is read, what was overwritten is counted with the record behind it
  // (Channel::Take).
  uint64_t overwritten = cursor.overwritten;
  if (!cursor.input->active() && cursor.rises == 0) {
    overwritten = std::max(overwritten, cursor.reader.state().overwritten);
    rose = rose || overwritten > cursor.overwritten;
  }
  if (!rose) return;
  cursor.seen = seen;
  cursor.rises++;
  const uint64_t begin = cursor.input->begin();
  rises_.push_back({.cursor = &cursor,
                    .look = last_look_,
                    .after = cursor.input->looked_at ? last_look_ : begin,
                    .discarded = seen,
                    .overwritten = overwritten});
}

uint64_t MissingLog::NotInside(uint64_t time) const {
  for (const Rise& rise : rises_) {
    if (rise.look < time && time < rise.until) return rise.look;
  }
  return time;
}

uint64_t MissingLog::NotBehindLong(uint64_t time, uint64_t length, uint64_t seen_after) const {
  for (const Rise& rise : rises_) {
    const bool is_long = rise.until - rise.look > length;
    if (is_long && rise.until > seen_after && rise.look < time) return rise.look;
  }
  return time;
}

uint64_t MissingLog::EarliestBegin(uint64_t time) const {
  for (const Rise& rise : rises_) time = std::min(time, rise.after);
  return time;
}

uint64_t MissingLog::CountRise(const Rise& rise) {
  Cursor& cursor = *rise.cursor;
  uint64_t events = 0;
  for (size_t i = 0; i < rise.discarded.size(); i++) {
    events += rise.discarded[i] - std::min(rise.discarded[i], cursor.discarded[i]);
    cursor.discarded[i] = std::max(rise.discarded[i], cursor.discarded[i]);
  }
  events += rise.overwritten - std::min(rise.overwritten, cursor.overwritten);
  cursor.overwritten = std::max(rise.overwritten, cursor.overwritten);
  cursor.rises--;
  return events;
}

void MissingLog::TakeRises(const Accept& accept, const Take& take) {
  std::erase_if(rises_, [&](const Rise& rise) {
    if (!accept(rise)) return false;
    take(rise, CountRise(rise));
    return true;
  });
}

void MissingLog::ForgetTimes() {
  for (Rise& rise : rises_) rise.look = rise.after = rise.until = 0;
  last_look_ = 0;
}

}  // namespace weft::consumer
