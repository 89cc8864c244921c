// SPDX-License-Identifier: Apache-2.0
// What is known of one Trace while it grows, as viewers of lttng-live get it: CTF traces with their
// metadata, and streams with their packets. A feeder adds to it; Viewers read it. Nothing is ever
// removed or moved to another index. Thread-safety: the owner's lock.
#ifndef WEFT_LIB_LIVE_LIVE_TRACE_H_
#define WEFT_LIB_LIVE_LIVE_TRACE_H_

#include <cstddef>
#include <cstdint>
#include <deque>
#include <string>

#include "lib/base/result.h"
#include "lib/base/uuid.h"

namespace weft::live {

struct Packet {
  uint64_t place = 0;  // in the PacketStore
  uint64_t bytes = 0;
  uint64_t content_bytes = 0;
  uint64_t begin_ns = 0;
  uint64_t end_ns = 0;
  uint64_t sequence = 0;
  uint64_t discarded = 0;
};

struct CtfTrace {
  std::string path;      // of its folder
  std::string metadata;  // TSDL in whole fragments; grows at its end only
  Uuid uuid{};
};

struct Stream {
  size_t trace = 0;
  std::string channel;
  uint64_t class_id = 0;
  uint64_t instance_id = 0;
  uint32_t cpu = 0;
  std::deque<Packet> packets;  // never empty, in the order of their sequence numbers
  uint64_t safe_ns = 0;        // nothing older comes behind the last packet; 0: not known
  bool has_ended = false;      // no packets come any more
};

struct LiveTrace {
  std::string host;     // at most 63 characters
  std::string session;  // at most 254
  std::deque<CtfTrace> traces;
  std::deque<Stream> streams;  // a stream comes after the metadata that describes its packets
  bool is_over = false;        // no streams come any more
};

// Holds the bytes of packets.
class PacketStore {
 public:
  virtual ~PacketStore() = default;
  [[nodiscard]] virtual Result<std::string> Read(uint64_t place, size_t bytes) const = 0;
};

}  // namespace weft::live

#endif  // WEFT_LIB_LIVE_LIVE_TRACE_H_
