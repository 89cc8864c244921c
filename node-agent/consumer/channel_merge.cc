// SPDX-License-Identifier: Apache-2.0
// The merge of a channel's rings by time; see channel.h.
#include <algorithm>

#include "node-agent/consumer/channel.h"
#include "node-agent/consumer/limits.h"

namespace weft::consumer {

bool Channel::Round(uint64_t lag, uint64_t& budget) {
  const uint64_t now = clock_->Now();
  uint64_t horizon = closed_ ? now : now - std::min(now, clock_->TicksIn(lag));
  // Ring sets that are still on their way have older records than the last one that arrived.
  if (now < behind_until_ && !pressure_ && !hurried_) {
    const uint64_t oldest = now - std::min(now, clock_->TicksIn(kMaxBehind));
    horizon = std::min(horizon, std::max({arrived_, oldest, horizon_}));
  }
  LookAtRings(now, horizon);
  missing_.Look(rings_, [this] { return clock_->Now(); });
  UpdateHurry(now);
  // It is not known when, between two looks, events went missing. The merge therefore stops at a
  // look.
  horizon = missing_.NotInside(horizon);
  // If no look took place for long, records wait until the events that went missing between them
  // can be counted in their packet.
  if (!closed_) {
    const uint64_t old = now - std::min(now, clock_->TicksIn(kHorizonLag));
    horizon = missing_.NotBehindLong(horizon, clock_->TicksIn(kLongRise), old);
  }
  horizon_ = horizon;
  // All honest records that the look found are older than this.
  latest_ = clock_->Now() + clock_->TicksIn(kClockSlack);
  const bool merged = Merge(budget);
  if (!starved_) {
    // However short the merge delay is: a record may become visible kHorizonLag late.
    const uint64_t safe = std::min(horizon, now - std::min(now, clock_->TicksIn(kHorizonLag)));
    promise_ = std::max(promise_, safe - std::min(safe, clock_->TicksIn(limits_.promise_lag)));
  }
  for (const auto& input : rings_) CountCorrupt(*input);
  UpdatePressure();
  EndRings();
  return merged;
}

// The owner of an atomic slot took its record's time before it commits, so the horizon waits for a
// bounded time.
void Channel::LookAtRings(uint64_t now, uint64_t& horizon) {
  const uint64_t oldest = now - std::min(now, clock_->TicksIn(kMaxLockLag));
  ending_ = false;
  for (const auto& input : rings_) {
    if (!input->active()) continue;
    ending_ = ending_ || input->gone;
    if (!closed_) {
      const uint64_t time = input->lock_time();
      if (time != 0) horizon = std::min(horizon, std::max(time, oldest));
    }
    // Once no process can write, this look finds all that there is. A ring that is still written is
    // looked at for a bounded time only.
    if ((input->gone || input->closed) && input->final_since == 0) input->final_since = now;
    if (input->final_since == 0 || now - input->final_since < clock_->TicksIn(kCloseWait)) {
      (void)input->Look();
    }
  }
}

bool Channel::GiveBuffer(Cursor& cursor) {
  const uint64_t wanted = cursor.reader.wanted();
  size_t bytes = kMinChunkBytes;
  while (bytes < wanted && bytes < kChunkBytes) bytes = std::min(2 * bytes, kChunkBytes);
  const size_t needed = cursor.reader.needed();
  if (needed > bytes) bytes = (needed + kLargeChunkStep - 1) / kLargeChunkStep * kLargeChunkStep;
  // A buffer that a larger record needed is given back if other slots may need the memory.
  const bool shrinks = cursor.buffer_bytes > kChunkBytes && bytes <= kChunkBytes &&
                       buffer_memory_ > kMaxChunkMemory / 2;
  if (shrinks) TakeBufferAway(cursor);
  if (cursor.buffer_bytes >= bytes) return true;
  const size_t growth = bytes - cursor.buffer_bytes;
  if (buffer_memory_ + growth > kMaxChunkMemory) {
    return cursor.buffer_bytes >= std::max(needed, kChunkBytes);
  }
  cursor.buffer = std::make_unique_for_overwrite<uint8_t[]>(bytes);
  cursor.buffer_bytes = bytes;
  buffer_memory_ += growth;
  return true;
}

void Channel::TakeBufferAway(Cursor& cursor) {
  cursor.buffer.reset();
  buffer_memory_ -= cursor.buffer_bytes;
  cursor.buffer_bytes = 0;
}

bool Channel::Prime(Cursor& cursor, uint64_t& budget) {
  // Another cursor of a ring set may have found that it is to be given up.
  if (!cursor.input->active()) return false;
  // Each turn copies something, moves on to the next sub-buffer, or ends.
  for (;;) {
    switch (cursor.reader.Fetch()) {
      case ring::SlotReader::Step::kRecord:
        // A time from the future is no time: the record goes out at once.
        cursor.time = cursor.reader.record().time;
        if (cursor.time > latest_) cursor.time = horizon_;
        return true;
      case ring::SlotReader::Step::kEnd:
        return false;
      case ring::SlotReader::Step::kCorrupt:
        cursor.input->GiveUp(cursor.reader.why_corrupt());
        return false;
      case ring::SlotReader::Step::kNeedCopy:
        break;
    }
    if (budget == 0) {
      starved_ = true;
      return false;
    }
    if (!GiveBuffer(cursor)) return false;
    const uint64_t bytes = std::min<uint64_t>(cursor.reader.wanted(), cursor.buffer_bytes);
    budget -= std::min(budget, std::max<uint64_t>(bytes, 1));
    progress_ += bytes;
    const Status copied = cursor.reader.Copy({cursor.buffer.get(), cursor.buffer_bytes});
    if (!copied) {
      cursor.input->GiveUp(copied.error().message);
      return false;
    }
    cursor.run = cursor.reader.LookThroughCopy();
    cursor.copies++;
  }
}

void Channel::StartMerge() {
  heap_.clear();
  for (const auto& input : rings_) {
    if (!input->active()) continue;
    for (const auto& cursor : input->cursors()) {
      if (cursor == nullptr) continue;
      if (cursor->reader.backlog() > 0) {
        heap_.push_back(cursor.get());
      } else if (cursor->buffer_bytes > 0) {
        TakeBufferAway(*cursor);
      }
    }
  }
}

void Channel::SiftDown(size_t at) {
  Cursor* const moved = heap_[at];
  for (;;) {
    size_t child = 2 * at + 1;
    if (child >= heap_.size()) break;
    if (child + 1 < heap_.size() && heap_[child + 1]->time < heap_[child]->time) child++;
    if (moved->time <= heap_[child]->time) break;
    heap_[at] = heap_[child];
    at = child;
  }
  heap_[at] = moved;
}

uint64_t Channel::NextTime() const {
  uint64_t limit = horizon_;
  for (size_t child = 1; child <= 2 && child < heap_.size(); child++) {
    limit = std::min(limit, heap_[child]->time);
  }
  return limit;
}

// Returns 0 if the copied records are of several CPUs.
uint64_t Channel::LongRunLimit() const {
  const ring::CopiedRun& first = heap_.front()->run;
  if (!first.one_cpu) return 0;
  uint64_t limit = horizon_;
  for (size_t i = 1; i < heap_.size(); i++) {
    const Cursor& other = *heap_[i];
    const bool apart = other.run.one_cpu && other.run.cpu != first.cpu;
    // Records behind the other cursor's copy may be of any CPU, but are not older than the copy's
    // last one.
    limit = std::min(limit, apart ? std::max(other.time, other.run.last_time) : other.time);
  }
  return limit;
}

bool Channel::Merge(uint64_t& budget) {
  starved_ = false;
  StartMerge();
  std::erase_if(heap_, [&](Cursor* cursor) { return !Prime(*cursor, budget); });
  for (size_t i = heap_.size() / 2; i-- > 0;) SiftDown(i);
  bool merged = false;
  // Without budget, a cursor may have older records than the copied ones. The next round goes on;
  // copied records stay.
  while (!starved_ && !heap_.empty() && heap_.front()->time <= horizon_) {
    Cursor& cursor = *heap_.front();
    uint64_t limit = NextTime();
    const bool look = runs_without_look_ == 0;
    bool one_copy = false;
    if (!look) {
      runs_without_look_--;
    } else if (const uint64_t far = LongRunLimit(); far > limit) {
      limit = far;
      one_copy = true;
    }
    merged = true;
    const uint64_t before = cursor.reader.state().accounted;
    const Run run = TakeRun(cursor, limit, one_copy, budget);
    if (look && cursor.reader.state().accounted - before < kLongRun * heap_.size()) {
      runs_without_look_ = kRunsWithoutLook;
    }
    if (run == Run::kEnd) {
      heap_.front() = heap_.back();
      heap_.pop_back();
    }
    if (!heap_.empty()) SiftDown(0);
  }
  return merged;
}

Channel::Run Channel::TakeRun(Cursor& cursor, uint64_t limit, bool one_copy, uint64_t& budget) {
  const uint64_t copy = cursor.copies;
  do {
    if (!Take(cursor)) {
      starved_ = true;
      return Run::kMore;
    }
    cursor.reader.Advance();
    TakeAlike(cursor, limit);
    if (!Prime(cursor, budget)) return Run::kEnd;
  } while (cursor.time <= limit && !(one_copy && cursor.copies != copy));
  return Run::kMore;
}

ctf::Appended Channel::Append(const ring::RecordView& record, uint64_t begin_ns, uint64_t time_ns,
                              const ctf::EventClass& event) {
  if (!hooks_.classes_by_empty_texts) {
    return streams_.Append(record.cpu, begin_ns, time_ns, event, record.body);
  }
  ctf::EmptyTexts texts = 0;
  const ctf::Appended appended =
      streams_.Append(record.cpu, begin_ns, time_ns, event, record.body, &texts);
  if (appended != ctf::Appended::kOtherTexts) return appended;
  return streams_.Append(record.cpu, begin_ns, time_ns,
                         classes_.WithEmptyTexts(event, texts, hooks_.announce), record.body);
}

bool Channel::Take(Cursor& cursor) {
  const ring::RecordView& record = cursor.reader.record();
  const bool late = cursor.time < promise_;
  if (late) cursor.time = promise_;
  const ctf::EventClass* event = cursor.input->Known(record.event);
  if (event == nullptr) {
    const Classified found = cursor.input->Classify(record.event, [this](Bytes description) {
      return classes_.Find(description, hooks_.announce);
    });
    event = found.event;
    if (event == nullptr) {
      Lose(cursor, found.lost);
      return true;
    }
  }
  const uint64_t time_ns = clock_->ToNs(cursor.time);
  const uint64_t raised = streams_.Has(record.cpu) ? streams_.writer(record.cpu).late() : 0;
  const uint64_t begin_ns = streams_.Has(record.cpu) ? time_ns : BeginOfStream(cursor);
  ctf::Appended appended = Append(record, begin_ns, time_ns, *event);
  if (appended == ctf::Appended::kFull) {
    hooks_.commit();
    appended = Append(record, begin_ns, time_ns, *event);
    // The commit before is still on its way to a relay: the record stays in its ring.
    if (appended == ctf::Appended::kFull) return false;
  }
  if (appended != ctf::Appended::kOk) {
    const bool no_file = record.cpu < limits_.cpus && !streams_.Has(record.cpu);
    // Without an agent, no new files can be opened for a while: the record stays in its ring.
    if (no_file && streams_.unanswered()) return false;
    Lose(cursor, no_file ? kLostStore : kLostMalformed);
    return true;
  }
  totals_.late += late || streams_.writer(record.cpu).late() != raised ? 1 : 0;
  cursor.last_cpu = record.cpu;
  CountOverwritten(cursor);
  pending_ = true;
  return true;
}

// Most records of a busy ring are of one event and one CPU, and of constant size: what Take asks
// about each of them has the same answer, or is asked here.
void Channel::TakeAlike(Cursor& cursor, uint64_t limit) {
  const ring::RecordView& last = cursor.reader.record();
  const ctf::EventClass* event = cursor.input->Known(last.event);
  if (event == nullptr || !streams_.Has(last.cpu) || streams_.writer(last.cpu).events() == 0 ||
      !ctf::PacketWriter::Run::CanRun(schema_, *event, last.body.size())) {
    return;
  }
  const ring::AlikeRecords next = cursor.reader.Alike(std::min(limit, latest_));
  // One that is late gets another time.
  if (next.count == 0 || ring::AlikeRecords::Time(next.first) < promise_) return;
  const ring::TickClock::Line clock = clock_->line();
  ctf::PacketWriter::Run run(streams_.writer(last.cpu), *event, last.body.size());
  const auto time_of = [&clock](const uint8_t* body) {
    return clock.ToNs(ring::AlikeRecords::Time(body - sizeof(weft_record)));
  };
  cursor.reader.AdvanceAlike(
      next, run.Put(next.first + sizeof(weft_record), next.bytes, next.count, time_of));
}

void Channel::Lose(Cursor& cursor, LostReason reason) {
  totals_.lost[reason]++;
  pending_ = true;
  const uint64_t time_ns = clock_->ToNs(cursor.time);
  const uint64_t after_ns = streams_.Has(cursor.last_cpu) ? time_ns : BeginOfStream(cursor);
  streams_.CountMissing(cursor.last_cpu, 1, after_ns, time_ns);
  CountOverwritten(cursor);
}

// Counts overwritten records, which are older than the current one.
void Channel::CountOverwritten(Cursor& cursor) {
  const uint64_t overwritten = cursor.reader.state().overwritten;
  if (overwritten != cursor.overwritten) {
    const uint64_t time_ns = clock_->ToNs(cursor.time);
    streams_.CountMissing(cursor.last_cpu, overwritten - cursor.overwritten, time_ns, time_ns);
    cursor.overwritten = overwritten;
  }
  cursor.taken_until = cursor.time;
}

void Channel::UpdatePressure() { pressure_ = AnySlotHolds(kFlushFraction, &Cursor::sealed); }

bool Channel::short_of_room() const { return AnySlotHolds(2, &Cursor::acknowledged); }

bool Channel::AnySlotHolds(uint64_t fraction, uint64_t Cursor::* from) const {
  for (const auto& input : rings_) {
    if (!input->active()) continue;
    const uint64_t most = input->set().geometry().slot_bytes() / fraction;
    for (const auto& cursor : input->cursors()) {
      if (cursor != nullptr && cursor->reader.end() - (*cursor).*from >= most) return true;
    }
  }
  return false;
}

void Channel::UpdateHurry(uint64_t now) {
  const uint64_t window = now - window_since_;
  if (window >= clock_->TicksIn(kSpeedWindow)) {
    window_since_ = now;
    const uint64_t times = clock_->TicksIn(kHurryTime) / window;
    for (const auto& input : rings_) {
      if (!input->active()) continue;
      const uint64_t bytes = input->set().geometry().slot_bytes();
      for (const auto& cursor : input->cursors()) {
        if (cursor == nullptr) continue;
        const uint64_t end = cursor->reader.end();
        if ((end - cursor->window_end) * times > bytes) {
          hurry_until_ = now + clock_->TicksIn(kHurryHold);
        }
        cursor->window_end = end;
      }
    }
  }
  hurried_ = now < hurry_until_;
}

}  // namespace weft::consumer
