// SPDX-License-Identifier: Apache-2.0
// The clocks of a consumer's rings. Rings of processes have the node's clock, which is chosen
// once. A ring of weft.ko has the other clock if its kernel gave up the TSC later. Both lead to
// equal nanoseconds. Owned by the consumer's thread.
#ifndef WEFT_NODE_AGENT_CONSUMER_RING_CLOCKS_H_
#define WEFT_NODE_AGENT_CONSUMER_RING_CLOCKS_H_

#include <cstdint>
#include <map>

#include "lib/ring/tick_clock.h"

namespace weft::consumer {

class RingClocks {
 public:
  // `node`: enum weft_clock_id. `offset_ns` is added to every time.
  RingClocks(uint32_t node, int64_t offset_ns) : node_(node), offset_ns_(offset_ns) { Of(node); }

  // Lives as long as this. Asked for the first time, it is measured for a few milliseconds.
  ring::TickClock& Of(uint32_t clock) {
    return clocks_.try_emplace(clock, clock, offset_ns_).first->second.clock;
  }
  ring::TickClock& node() { return Of(node_); }

  // Called about once a second, between records.
  void Calibrate() {
    for (auto& [_, measured] : clocks_) measured.clock.Calibrate();
  }

 private:
  struct Measured {
    Measured(uint32_t id, int64_t offset_ns) : ticks(id), clock(ticks, offset_ns) {}
    ring::MachineTicks ticks;
    ring::TickClock clock;
  };

  uint32_t node_;
  int64_t offset_ns_;
  std::map<uint32_t, Measured> clocks_;  // a map: they are referred to
};

}  // namespace weft::consumer

#endif  // WEFT_NODE_AGENT_CONSUMER_RING_CLOCKS_H_
