// SPDX-License-Identifier: Apache-2.0
// One ring set as its channel reads it: a cursor for every slot that was ever written to, and the
// classes of the ring set's event ids. Owned by the channel, used by the consumer's thread.
// Invariant: at its first contradiction a ring set is given up as a whole; records that were
// passed on before stay.
#ifndef WEFT_NODE_AGENT_CONSUMER_RING_INPUT_H_
#define WEFT_NODE_AGENT_CONSUMER_RING_INPUT_H_

#include <memory>
#include <string>
#include <vector>

#include "lib/ring/description_reader.h"
#include "lib/ring/slot_reader.h"
#include "node-agent/consumer/class_table.h"
#include "node-agent/consumer/state.h"

namespace weft::consumer {

class RingInput;

// A slot's reader, and the state of its merge.
struct Cursor {
  Cursor(RingInput& owner, const ring::RingSet& set, uint32_t slot)
      : input(&owner),
        reader(set, slot),
        sealed(reader.position()),
        acknowledged(reader.position()) {}

  RingInput* input;
  ring::SlotReader reader;
  std::unique_ptr<uint8_t[]>
      buffer;  // what reader copies into; none while there is nothing to read
  size_t buffer_bytes = 0;
  uint64_t time = 0;          // of the record at hand; the key of the merge
  ring::CopiedRun run;        // of the records copied and not handed out
  uint64_t copies = 0;        // counts: another one, another run
  uint64_t sealed;            // position in the commit that began last
  uint64_t acknowledged;      // and in the last one that is in the journal
  bool went_round = false;    // acknowledged was a ring's size or more
  uint64_t window_end = 0;    // the reader's end() when the present speed window began
  DiscardCounts discarded{};  // that were counted as missing
  DiscardCounts seen{};       // that were seen
  uint64_t overwritten = 0;   // that were counted as missing
  uint32_t rises = 0;         // of seen that were not counted yet; see missing_log.h
  uint64_t taken_until = 0;   // ticks: time of a record that was taken, none of which is missing
  uint32_t last_cpu = 0;
};

class RingInput {
 public:
  RingInput(ring::RingSet set, uint64_t instance, uint64_t process)
      : set_(std::move(set)),
        descriptions_(set_),
        instance_(instance),
        process_(process),
        cursors_(set_.geometry().slot_count) {}
  RingInput(const RingInput&) = delete;
  RingInput& operator=(const RingInput&) = delete;

  // Goes on where the journal says; without a record where the ring's tails are.
  Status Restore(const RingRecord& record);
  Status RestoreFromTails();

  // Finds new slots and takes a fresh look at all. False: the ring set was given up.
  bool Look();

  // The meaning of an event id. `find` classifies a description that was not seen before.
  using FindClass = std::function<Classified(Bytes)>;
  Classified Classify(uint16_t event, const FindClass& find);
  [[nodiscard]] const ctf::EventClass* Known(uint16_t event) const {
    return event < events_.size() ? events_[event].event : nullptr;
  }

  // Gives the ring set up; the first reason stays.
  void GiveUp(const std::string& why, LostReason reason = kLostCorrupt);

  [[nodiscard]] bool active() const { return phase_ == RingPhase::kActive; }
  [[nodiscard]] RingPhase phase() const { return phase_; }
  void set_done() { phase_ = RingPhase::kDone; }
  [[nodiscard]] const std::string& why() const { return why_; }
  [[nodiscard]] ring::RingSet& set() { return set_; }
  [[nodiscard]] const ring::RingSet& set() const { return set_; }
  [[nodiscard]] uint64_t instance() const { return instance_; }
  [[nodiscard]] uint64_t process() const { return process_; }
  // Cursors by slot; null: nothing was ever written.
  [[nodiscard]] const std::vector<std::unique_ptr<Cursor>>& cursors() const { return cursors_; }

  // Has a writer overtaken the last Look? Then this ring has no end without another one.
  [[nodiscard]] bool stale() const;
  // Was every slot read to what the last Look saw?
  [[nodiscard]] bool at_end() const;
  // Returns the time of the record of the owner that holds the atomic slot's lock; 0: there is no
  // owner.
  [[nodiscard]] uint64_t lock_time() const;
  // Committed records: handed out, overwritten, and those between the reader and head.
  [[nodiscard]] uint64_t recorded() const;
  [[nodiscard]] uint64_t overwritten() const;
  // As of the last look of the channel's MissingLog: also those that no packet counts yet, as no
  // packet can be stored while the relay is away or its disk is full.
  [[nodiscard]] DiscardCounts discarded() const;
  // Records of a ring set that was given up: committed, never handed out.
  [[nodiscard]] uint64_t corrupt_recorded() const { return corrupt_recorded_; }
  // Returns the reason as which this ring's lost records count.
  [[nodiscard]] LostReason lost_as() const { return lost_as_; }

  [[nodiscard]] RingRecord Record() const;
  // Begins a commit with the present Record.
  void Seal();
  // Called when the journal has the state of the last commit: its positions become the writer's
  // room. Returns true if the ring had ended. Adds to `went_round` the slots whose writer has used
  // every page of its ring by now, each once.
  bool Acknowledge(std::vector<uint32_t>& went_round);

  // Ticks: no event is older. This is the time that the ring states, if it is possible.
  [[nodiscard]] uint64_t begin() const { return begin_; }
  void set_begin(uint64_t ticks) { begin_ = ticks; }

  bool looked_at = false;    // the channel's MissingLog has its counts
  bool gone = false;         // no process writes here any more
  bool closed = false;       // StoreClosed was done
  uint64_t final_since = 0;  // ticks: first looked at after the last writer's end; 0: not yet
  bool reported = false;     // its end was told
  bool counted = false;      // what was given up
  uint64_t moved_bytes = 0;  // of this consumer's memory that it uses
  bool moved = false;        // out of its container's memory

 private:
  [[nodiscard]] uint64_t BehindHead(const Cursor& cursor) const;

  ring::RingSet set_;
  ring::DescriptionReader descriptions_;
  uint64_t instance_;
  uint64_t process_;
  std::vector<std::unique_ptr<Cursor>> cursors_;
  std::vector<Classified> events_;
  RingPhase phase_ = RingPhase::kActive;
  std::string why_;
  uint64_t corrupt_recorded_ = 0;
  LostReason lost_as_ = kLostCorrupt;
  bool ended_at_seal_ = false;
  uint64_t begin_ = 0;
};

}  // namespace weft::consumer

#endif  // WEFT_NODE_AGENT_CONSUMER_RING_INPUT_H_
