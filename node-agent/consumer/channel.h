// SPDX-License-Identifier: Apache-2.0
// A channel of one container: merges its rings by time, up to a horizon, and splits them by CPU
// into CTF streams. The output that it belongs to decides when merged events are written and
// acknowledged. Used by the consumer's thread only.
//
// Merge: the channel takes the cursor with the oldest record, and passes on its records until
// another cursor's record (or the horizon) is older; such a run needs no heap. Order matters only
// inside a stream. If all copied records are of one CPU, and no other cursor has records of that
// CPU at hand, the run goes on to where the other cursors' copies end.
//
// Invariants
//   1. A record is Advance()d over only after it was appended or counted as lost: at any moment the
//      cursors' positions, the pending packets and the counts agree.
//   2. No record is appended with a time before the promise or before the last record of its
//      stream; an older one gets that time (late).
//   3. Records from the future (a hostile clock) get the present time.
#ifndef WEFT_NODE_AGENT_CONSUMER_CHANNEL_H_
#define WEFT_NODE_AGENT_CONSUMER_CHANNEL_H_

#include <algorithm>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "lib/ipc/messages.h"
#include "lib/ring/tick_clock.h"
#include "node-agent/consumer/class_table.h"
#include "node-agent/consumer/cpu_streams.h"
#include "node-agent/consumer/limits.h"
#include "node-agent/consumer/missing_log.h"
#include "node-agent/consumer/ring_input.h"
#include "node-agent/consumer/ring_mover.h"

namespace weft::consumer {

// The most that this machine can have. A record or a ring set that claims more is malformed.
struct Limits {
  uint32_t cpus = kMaxCpus;
  uint32_t slots = WEFT_RING_MAX_SLOTS;
  // Descriptors are scarce: this many rings that ended, or one if there are many rings, make a
  // commit due.
  size_t ended_rings = 64;
  size_t many_rings = kMaxRingsPerChannel / 2;
  uint64_t promise_lag = kPromiseLag;
};

class Channel {
 public:
  // The services that a channel needs from its output.
  struct Hooks {
    ClassTable::Announce announce;
    CpuStreams::Prepare prepare;
    // Called when a packet is full: a commit of everything of the output begins.
    std::function<void()> commit;
    // An event whose texts are empty in other places gets another class (docs/adr/0034).
    bool classes_by_empty_texts = false;
    ClassTable::Notice notice = [](const std::string&) {};  // for people
    // Rings of processes are opened one way, those of weft.ko another.
    Result<ring::RingSet> (*open_ring)(UniqueFd) = ring::RingSet::Open;
    // Called when a ring set was added, with the vpid that its process claims.
    std::function<void(uint32_t vpid)> notice_vpid = [](uint32_t) {};
    // Called before anything is read of a ring set: a consumer that was killed may have been moving
    // it.
    std::function<Status(int fd)> complete_move = [](int) -> Status { return {}; };
    // For rings that say which clock they use and can be believed: returns that clock. There is one
    // ring at a time then.
    std::function<ring::TickClock*(const ring::Geometry&)> clock_of = {};
  };

  Channel(uint64_t id, ctf::Channel schema, const Uuid& trace_uuid, PacketSink& sink,
          ring::TickClock& clock, const Limits& limits, Hooks hooks);
  Channel(const Channel&) = delete;
  Channel& operator=(const Channel&) = delete;

  Status Restore(const ChannelRecord& record, const std::vector<std::vector<uint8_t>>& classes);

  // Adds a ring set, which the journal may know already. An error concerns this ring set only.
  Status AddRing(UniqueFd fd, uint64_t instance, uint64_t process);
  void ProcessGone(uint64_t process);
  // The process of this ring set is gone: moves what it holds out of its container's memory, if
  // that takes at most `budget` bytes, else counts it as lost, where it may. True: the container
  // has its memory. False: not yet, or there is no such ring set.
  bool MoveRing(uint64_t instance, RingMover& mover, uint64_t budget, bool may_lose);
  [[nodiscard]] uint64_t moved_bytes() const;
  // Forgets the rings of this instance that are done; the journal forgets them with the next
  // commit.
  void ForgetRing(uint64_t instance);
  // After this and a CloseBarrier, no record begins any more. Rings that come later are closed at
  // once.
  void Close();

  // Merges what is older than now - lag, at most `budget` bytes. True: something was merged.
  bool Round(uint64_t lag, uint64_t& budget);

  // A commit. Seal: counts what is missing, completes packets; from here on records belong to the
  // next one. Write: the packets go into files, perhaps in another thread (see CpuStreams). Settle:
  // the journal's record of this commit. Acknowledge, when that is written: gives the writers room.
  void Seal();
  void Write() { streams_.Write(); }
  Status Settle(ChannelRecord& record);
  void Acknowledge();
  // Called in place of Acknowledge, if the journal's record was not written: no ring gets room, but
  // the channel may be drained, since a crash before the agent knows repeats this commit.
  void EndCommit() { committing_ = false; }

  // Something is in no commit yet.
  [[nodiscard]] bool pending() const { return pending_ || streams_.pending() || !missing_.empty(); }
  // Does some slot hold so much data that is in no commit yet that its writer may soon have no
  // room?
  [[nodiscard]] bool under_pressure() const { return pressure_; }
  // Has some slot's writer at most half of its room until a commit ends?
  [[nodiscard]] bool short_of_room() const;
  // Does some slot fill so fast that its records are better read while they are young?
  [[nodiscard]] bool hurried() const { return hurried_; }
  // Have so many rings ended since the last commit began that their descriptors should be given
  // back?
  [[nodiscard]] bool holds_ended_rings() const {
    return ended_rings_ >= limits_.ended_rings ||
           (ended_rings_ > 0 && rings_.size() >= limits_.many_rings);
  }
  // Descriptors are short, and there are rings that give theirs back as soon as their last records
  // are merged.
  [[nodiscard]] bool crowded() const { return ending_ && rings_.size() >= limits_.many_rings; }
  // Closed, and every ring was read to its end and committed.
  [[nodiscard]] bool drained() const;
  [[nodiscard]] bool closed() const { return closed_; }
  [[nodiscard]] ipc::ChannelCounts Counts() const;

  struct Ended {
    uint64_t instance = 0;
    bool corrupt = false;
    std::string reason;
  };
  // Returns the rings that ended since the last call and whose events are committed.
  std::vector<Ended> TakeEnded();
  struct SlotName {
    uint64_t instance = 0;
    uint32_t slot = 0;
  };
  // Returns the slots whose writers have used every page of their rings, each once.
  std::vector<SlotName> TakeWentRound() { return std::exchange(went_round_, {}); }
  // Reports all rings that ended and were not forgotten again, for a new agent.
  void RepeatEnded();
  // Call it when the agent has said all it knows: rings of the journal that it did not bring are
  // gone for good.
  void DropAbsentRings();

  [[nodiscard]] uint64_t id() const { return id_; }
  [[nodiscard]] const std::string& name() const { return schema_.name; }
  [[nodiscard]] const ctf::Channel& schema() const { return schema_; }
  [[nodiscard]] size_t slots() const;
  [[nodiscard]] uint64_t progress() const { return progress_; }
  // Nothing older is appended. 0: none yet.
  [[nodiscard]] uint64_t PromiseNs() const { return promise_ == 0 ? 0 : clock_->ToNs(promise_); }

 private:
  enum class Run : uint8_t { kMore, kEnd };

  void UseClock(ring::TickClock* clock);
  void NoteArrival(uint64_t created);
  void LookAtRings(uint64_t now, uint64_t& horizon);
  void StartMerge();
  bool Merge(uint64_t& budget);
  // Returns the time up to which the first cursor's records come before every other cursor's.
  [[nodiscard]] uint64_t NextTime() const;
  [[nodiscard]] uint64_t LongRunLimit() const;
  // Hands out records of `cursor` up to `limit`; no further than its copy, where `one_copy`.
  Run TakeRun(Cursor& cursor, uint64_t limit, bool one_copy, uint64_t& budget);
  // Makes the current record an event, or a lost one. Returns false if it has to wait.
  bool Take(Cursor& cursor);
  // Called after Take and Advance: takes the following records up to `limit` that have the same
  // class, in one go.
  void TakeAlike(Cursor& cursor, uint64_t limit);
  // Writes a record, with the class that its empty texts ask for.
  ctf::Appended Append(const ring::RecordView& record, uint64_t begin_ns, uint64_t time_ns,
                       const ctf::EventClass& event);
  void Lose(Cursor& cursor, LostReason reason);
  void CountOverwritten(Cursor& cursor);
  // Makes the cursor's next record be at hand. False: none now.
  bool Prime(Cursor& cursor, uint64_t& budget);
  bool GiveBuffer(Cursor& cursor);
  void TakeBufferAway(Cursor& cursor);
  void SiftDown(size_t at);
  void UpdatePressure();
  // Does some slot hold at least 1 / `fraction` of its ring behind that position?
  [[nodiscard]] bool AnySlotHolds(uint64_t fraction, uint64_t Cursor::* from) const;
  void UpdateHurry(uint64_t now);
  // Adds what is missing, up to the time to which streams are complete, to the streams' counts.
  void CountMissing();
  // Ticks: all records up to here that the rings were seen to hold are merged.
  [[nodiscard]] uint64_t MergedUntil() const;
  // Returns where a stream begins whose first record is the current one: before what is missing
  // already.
  [[nodiscard]] uint64_t BeginOfStream(const Cursor& cursor) const;
  // Returns the time of `ticks`, not before the channel began.
  [[nodiscard]] uint64_t MissingNs(uint64_t ticks) const {
    // The comparison is signed: a ring may state any time, also one before the clock's origin.
    return static_cast<uint64_t>(
        std::max(static_cast<int64_t>(clock_->ToNs(ticks)), static_cast<int64_t>(begin_ns_)));
  }
  void EndRings();
  void CountCorrupt(RingInput& input);
  void Report(const RingInput& input);

  uint64_t id_;
  ctf::Channel schema_;
  ring::TickClock* clock_;
  Limits limits_;
  Hooks hooks_;
  ClassTable classes_;
  CpuStreams streams_;
  std::vector<std::unique_ptr<RingInput>> rings_;
  std::vector<RingRecord> restored_;  // rings of the journal that did not come yet
  std::vector<Cursor*> heap_;
  std::vector<Ended> ended_;
  size_t ended_rings_ = 0;  // since the last commit began
  std::vector<SlotName> went_round_;
  Totals totals_;
  MissingLog missing_;
  uint64_t begin_ns_;     // no event of the channel is older
  uint64_t promise_ = 0;  // ticks; nothing older is appended
  uint64_t horizon_ = 0;  // of this round: what is older is merged
  uint64_t latest_ = 0;   // of this round: no honest record is newer
  bool starved_ = false;  // this round left something: no budget, or a file that is not opened
  size_t buffer_memory_ = 0;
  size_t runs_without_look_ = 0;
  uint64_t progress_ = 0;  // bytes copied, ever
  bool pending_ = false;   // something was read since the last commit began
  ChannelRecord sealed_;   // of the commit that is going on
  bool committing_ = false;
  bool pressure_ = false;
  bool hurried_ = false;
  bool ending_ = false;   // some ring's process is gone, and the ring not read to its end
  uint64_t arrived_ = 0;  // ticks: creation time of the newest ring set that arrived
  uint64_t behind_until_ =
      0;  // ticks: until this time, ring sets older than the horizon may still arrive
  uint64_t hurry_until_ = 0;   // ticks
  uint64_t window_since_ = 0;  // ticks: the present speed window
  bool closed_ = false;
};

}  // namespace weft::consumer

#endif  // WEFT_NODE_AGENT_CONSUMER_CHANNEL_H_
