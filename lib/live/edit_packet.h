// SPDX-License-Identifier: Apache-2.0
// Changes packets of weft (docs/formats/ctf.md) for one viewer. Pure functions.
#ifndef WEFT_LIB_LIVE_EDIT_PACKET_H_
#define WEFT_LIB_LIVE_EDIT_PACKET_H_

#include <cstdint>
#include <string>
#include <string_view>

#include "lib/base/result.h"
#include "lib/ctf/packet_writer.h"

namespace weft::live {

// A packet without events, at one time. Of `like`: trace, channel, instance, CPU, count of
// discarded events.
std::string EmptyPacket(const ctf::PacketInfo& like, uint64_t sequence, uint64_t time_ns);

void SetSequence(std::string& packet, uint64_t sequence);

struct Raised {
  std::string packet;
  uint64_t events = 0;  // that have another time now
};

// Gives all that is older than `floor_ns` in a packet this time: events, beginning and end.
// `metadata` describes the packet. kCorrupt: it cannot be decoded.
Result<Raised> RaiseTimes(std::string_view packet, std::string_view metadata, uint64_t floor_ns);

}  // namespace weft::live

#endif  // WEFT_LIB_LIVE_EDIT_PACKET_H_
