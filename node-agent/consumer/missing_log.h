// SPDX-License-Identifier: Apache-2.0
// Finds out when events went missing. A ring only counts the events that it discards, without a
// time. The channel therefore looks at the counters of all its rings in every round: a counter
// that rose did so between two looks. The log keeps each such rise until a packet of its CTF
// stream may end behind the rise. Readers are then told that the events were discarded between the
// end of the packet before and the end of the packet that counts them. Owned by the channel, used
// by the consumer's thread only. All times are ticks of the channel's clock.
//
// Invariants
//   1. Looks of a channel have increasing times, and every rise lies between two successive looks:
//      no rise contains the time of a look (NotInside).
//   2. The rises of a slot are in order. Cursor::discarded and Cursor::overwritten are the events
//      that streams have counted; together with the remaining rises they are the events that the
//      channel has seen.
#ifndef WEFT_NODE_AGENT_CONSUMER_MISSING_LOG_H_
#define WEFT_NODE_AGENT_CONSUMER_MISSING_LOG_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "node-agent/consumer/ring_input.h"

namespace weft::consumer {

class MissingLog {
 public:
  struct Rise {
    Cursor* cursor = nullptr;
    uint64_t look = 0;  // the look before the one that saw it; 0: there was none
    uint64_t after =
        0;  // no event of it is older: that look, or where that is later, the ring's begin
    uint64_t until = 0;         // the look that saw it: no event of it is newer
    DiscardCounts discarded{};  // the slot's counts after it
    uint64_t overwritten = 0;
  };

  // Looks at all rings. `now` is asked when all were looked at.
  void Look(const std::vector<std::unique_ptr<RingInput>>& rings,
            const std::function<uint64_t()>& now);

  // Returns the latest time up to `time` that is inside no rise.
  [[nodiscard]] uint64_t NotInside(uint64_t time) const;

  // Returns the latest time up to `time` before all rises that took longer than `length` and were
  // seen after `seen_after`.
  [[nodiscard]] uint64_t NotBehindLong(uint64_t time, uint64_t length, uint64_t seen_after) const;

  // Returns the earliest of `time` and the begins of all rises.
  [[nodiscard]] uint64_t EarliestBegin(uint64_t time) const;

  // Counts the rises that `accept` returns true for, in order, and gives each to `take` with its
  // number of events. The others stay.
  using Accept = std::function<bool(const Rise&)>;
  using Take = std::function<void(const Rise&, uint64_t events)>;
  void TakeRises(const Accept& accept, const Take& take);

  // Call it when the channel gets another clock: what is left went missing at no known time.
  void ForgetTimes();

  [[nodiscard]] bool empty() const { return rises_.empty(); }

 private:
  void LookAt(Cursor& cursor);
  static uint64_t CountRise(const Rise& rise);

  std::vector<Rise> rises_;
  uint64_t last_look_ = 0;
};

}  // namespace weft::consumer

#endif  // WEFT_NODE_AGENT_CONSUMER_MISSING_LOG_H_
