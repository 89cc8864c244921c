// SPDX-License-Identifier: Apache-2.0
// Checks that the times of one stream go forward: from packet to packet, from event to event, and
// within the bounds that a packet states. The times of a file that was doubled, put together from
// parts, or damaged do not; babeltrace2 ends there. Called by StreamReader, which shows the events
// all the same. Thread-safety: one thread per object.
#ifndef WEFT_LIB_CTF_TIME_ORDER_H_
#define WEFT_LIB_CTF_TIME_ORDER_H_

#include <cstdint>
#include <optional>
#include <string>

#include "lib/ctf/trace_class.h"

namespace weft::ctf {

// All times are in cycles of the stream's clock.
class TimeOrder {
 public:
  explicit TimeOrder(const TraceClass& trace);

  // Call it when a packet begins, at byte `offset` of the file. A time that is unknown, or of less
  // than 64 bits and may therefore have wrapped, is std::nullopt. Returns what is wrong, for
  // people; "": nothing, or such a packet was reported before.
  std::string Packet(const ClockClass& clock, std::optional<uint64_t> begin,
                     std::optional<uint64_t> end, uint64_t offset);

  // Takes the packet's next event. Its result is like that of Packet.
  std::string Event(const ClockClass& clock, uint64_t time, const std::string& name);

  // Does the current packet begin before the end of one that was shown before it?
  [[nodiscard]] bool goes_back() const { return goes_back_; }

  // Returns the number of packets whose times are wrong.
  [[nodiscard]] uint64_t wrong_packets() const { return wrong_packets_; }

 private:
  // Counts the current packet once, and returns `what` for the first one.
  std::string Wrong(const std::string& what);

  bool events_may_follow_end_ = false;      // versions of LTTng before 2.11 write them
  bool events_may_precede_packet_ = false;  // barectf does
  std::optional<uint64_t> end_;             // of the current packet
  std::optional<uint64_t> last_;            // time of the event before; at first the packet's begin
  // The latest end of the packets before the current one, and that packet's place.
  std::optional<uint64_t> latest_end_;
  uint64_t latest_offset_ = 0;
  uint64_t offset_ = 0;
  bool goes_back_ = false;
  bool is_wrong_ = false;  // the current packet
  uint64_t wrong_packets_ = 0;
};

}  // namespace weft::ctf

#endif  // WEFT_LIB_CTF_TIME_ORDER_H_
