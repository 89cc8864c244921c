// SPDX-License-Identifier: Apache-2.0
// See channel.h. Here: the rings' coming and going, and counts; channel_merge.cc has the merge.
#include "node-agent/consumer/channel.h"

#include <algorithm>

#include "node-agent/consumer/limits.h"

namespace weft::consumer {

Channel::Channel(uint64_t id, ctf::Channel schema, const Uuid& trace_uuid, PacketSink& sink,
                 ring::TickClock& clock, const Limits& limits, Hooks hooks)
    : id_(id),
      schema_(std::move(schema)),
      clock_(&clock),
      limits_(limits),
      hooks_(std::move(hooks)),
      classes_(schema_, hooks_.notice),
      streams_(sink, trace_uuid, schema_, limits.cpus, hooks_.prepare),
      begin_ns_(clock.ToNs(clock.Now())) {}

Status Channel::Restore(const ChannelRecord& record,
                        const std::vector<std::vector<uint8_t>>& classes) {
  if (classes.size() < record.classes) {
    return Fail(ErrorCode::kCorrupt, "journal: event classes are missing");
  }
  for (uint32_t i = 0; i < record.classes; i++) WEFT_TRY(classes_.Restore(classes[i]));
  for (const StreamRecord& stream : record.streams) {
    WEFT_TRY(streams_.Restore(stream));
    begin_ns_ = std::min(begin_ns_, stream.last_time);
  }
  totals_ = record.totals;
  restored_ = record.rings;
  return {};
}

Status Channel::AddRing(UniqueFd fd, uint64_t instance, uint64_t process) {
  if (rings_.size() >= kMaxRingsPerChannel) return Fail(ErrorCode::kLimit, "too many rings");
  WEFT_TRY(hooks_.complete_move(fd.get()));
  WEFT_ASSIGN(ring::RingSet set, hooks_.open_ring(std::move(fd)));
  if (set.geometry().slot_count > limits_.slots) {
    return Fail(ErrorCode::kInvalid, "ring: more slots than this machine has CPUs");
  }
  if (set.geometry().channel_id != id_) {
    return Fail(ErrorCode::kInvalid, "ring: it belongs to another channel");
  }
  for (const auto& known : rings_) {
    if (known->set().key() == set.key()) return {};
  }
  const auto record = std::find_if(restored_.begin(), restored_.end(), [&set](const auto& r) {
    return r.key == set.key() && r.instance == set.geometry().instance;
  });
  if (hooks_.clock_of) UseClock(hooks_.clock_of(set.geometry()));
  auto input = std::make_unique<RingInput>(std::move(set), instance, process);
  input->set_begin(std::min(input->set().geometry().created, clock_->Now()));
  if (record != restored_.end()) {
    const Status status = input->Restore(*record);
    restored_.erase(record);
    if (!status) input->GiveUp(status.error().message);
  } else {
    totals_.rings++;
    NoteArrival(input->set().geometry().created);
    const Status status = input->RestoreFromTails();
    if (!status) input->GiveUp(status.error().message);
  }
  if (closed_) input->set().StoreClosed();
  input->closed = closed_;
  hooks_.notice_vpid(input->set().geometry().claimed_pid);
  rings_.push_back(std::move(input));
  pending_ = true;
  return {};
}

// Sets the clock of a channel that has read nothing yet, or has read all that it will of a ring
// with another clock.
void Channel::UseClock(ring::TickClock* clock) {
  if (clock == clock_) return;
  clock_ = clock;
  promise_ = hurry_until_ = window_since_ = horizon_ = arrived_ = behind_until_ = 0;
  missing_.ForgetTimes();
}

// Ring sets arrive in the order in which they were made. If many processes begin at once, they may
// arrive later than their records should be merged. The time at which a ring set says that it began
// is believed within bounds only.
void Channel::NoteArrival(uint64_t created) {
  const uint64_t now = clock_->Now();
  if (created > now || now - created > clock_->TicksIn(kMaxBehind)) return;
  arrived_ = std::max(arrived_, created);
  if (now - created >= clock_->TicksIn(kHorizonLag / 2))
    behind_until_ = now + clock_->TicksIn(kBehindHold);
}

void Channel::ProcessGone(uint64_t process) {
  for (const auto& input : rings_) input->gone = input->gone || input->process() == process;
}

bool Channel::MoveRing(uint64_t instance, RingMover& mover, uint64_t budget, bool may_lose) {
  const auto found = std::ranges::find(rings_, instance, &RingInput::instance);
  if (found == rings_.end() || !(*found)->gone || (*found)->reported) return false;
  RingInput& input = **found;
  if (input.moved) return true;
  if (input.active()) {
    if (input.final_since == 0) input.final_since = clock_->Now();
    (void)input.Look();
  }
  std::vector<FileRange> keep = RangesToKeep(input, input.phase() != RingPhase::kCorrupt);
  if (BytesIn(keep) > budget && input.phase() != RingPhase::kCorrupt) {
    if (!may_lose || !input.active()) return false;
    heap_.clear();  // of the last merge
    input.GiveUp("its container needs the memory", kLostMemory);
    CountCorrupt(input);
    keep = RangesToKeep(input, false);
  }
  if (!mover.Move(input.set(), keep)) return false;
  input.moved = true;
  input.moved_bytes = BytesIn(keep);
  return true;
}

uint64_t Channel::moved_bytes() const {
  uint64_t sum = 0;
  for (const auto& input : rings_) sum += input->moved_bytes;
  return sum;
}

void Channel::ForgetRing(uint64_t instance) {
  heap_.clear();  // of the last merge
  const auto forget = [&](const std::unique_ptr<RingInput>& input) {
    if (input->instance() != instance || input->active()) return false;
    // A writer may have gone on after its ring was given up: this counts its last rises.
    missing_.TakeRises(
        [&](const MissingLog::Rise& rise) { return rise.cursor->input == input.get(); },
        [&](const MissingLog::Rise& rise, uint64_t events) {
          streams_.CountMissing(rise.cursor->last_cpu, events, PromiseNs(), PromiseNs());
        });
    totals_.recorded += input->recorded();
    totals_.overwritten += input->overwritten();
    const DiscardCounts discarded = input->discarded();
    for (size_t i = 0; i < discarded.size(); i++) totals_.discarded[i] += discarded[i];
    for (const auto& cursor : input->cursors()) {
      if (cursor != nullptr) TakeBufferAway(*cursor);
    }
    return true;
  };
  if (std::erase_if(rings_, forget) > 0) pending_ = true;
}

void Channel::Close() {
  closed_ = true;
  pending_ = true;  // one last try to write what could not be written
  for (const auto& input : rings_) {
    input->set().StoreClosed();
    input->closed = true;
  }
}

void Channel::CountCorrupt(RingInput& input) {
  if (input.phase() != RingPhase::kCorrupt || input.counted) return;
  input.counted = true;
  totals_.corrupt_rings += input.lost_as() == kLostCorrupt ? 1 : 0;
  totals_.lost[input.lost_as()] += input.corrupt_recorded();
  for (const auto& cursor : input.cursors()) {
    if (cursor != nullptr) TakeBufferAway(*cursor);
  }
  pending_ = true;
}

// A ring ends when no process can write to it any more and everything was read. Only a look after
// the writer's end shows this. If a process goes on writing, kCloseWait bounds the looks.
void Channel::EndRings() {
  const uint64_t now = clock_->Now();
  for (const auto& input : rings_) {
    if (!input->active() || input->final_since == 0) continue;
    const bool waited = now - input->final_since >= clock_->TicksIn(kCloseWait);
    if (waited && input->stale()) {
      input->GiveUp("written to after its end");
      CountCorrupt(*input);
      continue;
    }
    if (!input->at_end()) continue;
    if (!waited && !input->gone && input->lock_time() != 0) continue;
    input->set_done();
    ended_rings_++;
    pending_ = true;
  }
}

uint64_t Channel::MergedUntil() const {
  // Some cursor may have older records than those at hand.
  if (starved_) return promise_;
  uint64_t until = horizon_;
  for (const Cursor* cursor : heap_) until = std::min(until, cursor->time);
  return until;
}

uint64_t Channel::BeginOfStream(const Cursor& cursor) const {
  uint64_t begin = missing_.EarliestBegin(cursor.time);
  if (cursor.reader.state().overwritten != cursor.overwritten) {
    const uint64_t before = cursor.taken_until == 0 ? cursor.input->begin() : cursor.taken_until;
    begin = std::min(begin, before);
  }
  return MissingNs(begin);
}

// A packet that counts a rise ends behind it; so the stream must have come so far, or may be said
// to have. The beacons' rule bounds what may be said: not later than now - kHorizonLag, however
// much sooner records are read.
void Channel::CountMissing() {
  const bool is_over = closed_ && std::ranges::none_of(rings_, &RingInput::active);
  const uint64_t now = clock_->Now();
  const uint64_t old = now - std::min(now, clock_->TicksIn(kHorizonLag));
  const uint64_t until_ns = clock_->ToNs(is_over ? now : std::min(MergedUntil(), old));
  missing_.TakeRises(
      [&](const MissingLog::Rise& rise) {
        const uint64_t reached = std::max(streams_.LastTime(rise.cursor->last_cpu), until_ns);
        return clock_->ToNs(rise.until) <= reached;
      },
      [&](const MissingLog::Rise& rise, uint64_t events) {
        streams_.CountMissing(rise.cursor->last_cpu, events, MissingNs(rise.after),
                              MissingNs(rise.until));
      });
}

void Channel::Seal() {
  EndRings();
  CountMissing();
  // A packet must not end inside what it does not count.
  const uint64_t promise = missing_.NotInside(promise_);
  streams_.Seal(promise == 0 ? 0 : clock_->ToNs(promise));
  sealed_ = {.id = id_,
             .stream_class = schema_.id,
             .classes = classes_.size(),
             .totals = totals_,
             .rings = restored_};
  for (const auto& input : rings_) {
    sealed_.rings.push_back(input->Record());
    input->Seal();
  }
  ended_rings_ = 0;
  pending_ = false;
  committing_ = true;
  UpdatePressure();
}

Status Channel::Settle(ChannelRecord& record) {
  CpuStreams::Settled settled = streams_.Settle();
  for (Totals* totals : {&totals_, &sealed_.totals}) {
    totals->delivered += settled.delivered;
    totals->lost[kLostStore] += settled.lost;
  }
  sealed_.streams = streams_.Records();
  record = std::move(sealed_);
  return std::move(settled.status);
}

void Channel::Acknowledge() {
  std::vector<uint32_t> went_round;
  for (const auto& input : rings_) {
    if (input->Acknowledge(went_round) && !input->reported) {
      input->reported = true;
      Report(*input);
    }
    for (const uint32_t slot : went_round) went_round_.push_back({input->instance(), slot});
    went_round.clear();
  }
  committing_ = false;
}

bool Channel::drained() const {
  return closed_ && !pending() && !committing_ &&
         std::all_of(rings_.begin(), rings_.end(), [](const auto& r) { return !r->active(); });
}

std::vector<Channel::Ended> Channel::TakeEnded() { return std::exchange(ended_, {}); }

void Channel::RepeatEnded() {
  for (const auto& input : rings_) {
    if (input->reported) Report(*input);
  }
}

void Channel::Report(const RingInput& input) {
  ended_.push_back(
      {.instance = input.instance(),
       .corrupt = input.phase() == RingPhase::kCorrupt && input.lost_as() == kLostCorrupt,
       .reason = input.why()});
}

void Channel::DropAbsentRings() {
  for (const RingRecord& ring : restored_) {
    totals_.tail_unknown += ring.phase == RingPhase::kActive ? 1 : 0;
    totals_.recorded += ring.corrupt_recorded;
    for (const SlotRecord& slot : ring.slots) {
      totals_.recorded += slot.recorded();
      totals_.overwritten += slot.state.overwritten;
      for (size_t i = 0; i < slot.discarded.size(); i++) {
        totals_.discarded[i] += slot.discarded[i];
      }
    }
    pending_ = true;
  }
  restored_.clear();
}

size_t Channel::slots() const {
  size_t sum = 0;
  for (const auto& input : rings_) sum += input->active() ? input->cursors().size() : 0;
  return sum;
}

ipc::ChannelCounts Channel::Counts() const {
  ipc::ChannelCounts counts;
  DiscardCounts discarded = totals_.discarded;
  counts.recorded = totals_.recorded;
  counts.overwritten = totals_.overwritten;
  for (const auto& input : rings_) {
    counts.recorded += input->recorded();
    counts.overwritten += input->overwritten();
    const DiscardCounts more = input->discarded();
    for (size_t i = 0; i < more.size(); i++) discarded[i] += more[i];
  }
  for (const RingRecord& ring : restored_) {
    counts.recorded += ring.corrupt_recorded;
    for (const SlotRecord& slot : ring.slots) {
      counts.recorded += slot.recorded();
      counts.overwritten += slot.state.overwritten;
      for (size_t i = 0; i < discarded.size(); i++) discarded[i] += slot.discarded[i];
    }
  }
  for (size_t i = 0; i < discarded.size(); i++) {
    if (discarded[i] > 0)
      counts.discarded[weft_discard_name(static_cast<uint32_t>(i))] = discarded[i];
  }
  uint64_t settled = totals_.delivered + counts.overwritten;
  for (uint8_t i = 0; i < kLostReasons; i++) {
    if (totals_.lost[i] == 0) continue;
    counts.lost[LostReasonName(static_cast<LostReason>(i))] = totals_.lost[i];
    settled += totals_.lost[i];
  }
  counts.delivered = totals_.delivered;
  counts.in_flight = counts.recorded > settled ? counts.recorded - settled : 0;
  counts.late = totals_.late;
  counts.bytes = streams_.bytes();
  counts.packets = streams_.packets();
  counts.streams = streams_.count();
  counts.rings = totals_.rings;
  counts.corrupt_rings = totals_.corrupt_rings;
  counts.tail_unknown = totals_.tail_unknown;
  return counts;
}

}  // namespace weft::consumer
