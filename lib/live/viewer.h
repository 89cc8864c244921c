// SPDX-License-Identifier: Apache-2.0
// The server's side of one lttng-live connection (docs/formats/live.md): answers the commands of a
// viewer, such as babeltrace2, from a LiveTrace. It has no sockets, no threads and no clock; the
// caller holds the LiveTrace's lock.
//
// Invariants
//   1. The viewer gets each packet of each stream once, in order, from the first one on.
//   2. What it gets is never older than what it may have shown. A viewer merges streams: it shows
//      events up to the least time that it knows of all its streams. A packet that reaches back
//      behind that, as the first one of a new stream can, gets later times (counted in raised()).
//   3. The metadata that a packet needs was announced with its index, or before.
// Commands are foreign bytes. After an error the connection is to be closed.
#ifndef WEFT_LIB_LIVE_VIEWER_H_
#define WEFT_LIB_LIVE_VIEWER_H_

#include <cstdint>
#include <string>
#include <vector>

#include "lib/base/bytes.h"
#include "lib/base/result.h"
#include "lib/live/live_trace.h"

namespace weft::live {

class Viewer {
 public:
  // Both outlive it. `number`: of the connection.
  Viewer(const LiveTrace& trace, const PacketStore& packets, uint64_t number)
      : trace_(trace), packets_(packets), number_(number) {}

  // Takes bytes of the connection, and answers as many commands as out() has room for. When out()
  // was sent, call it again, also without bytes. kCorrupt: this is not the protocol.
  Status Receive(Bytes bytes);
  // The bytes to be sent; the caller takes off what it sent.
  [[nodiscard]] std::string& out() { return out_; }

  [[nodiscard]] bool is_attached() const { return is_attached_; }
  // Events that were given a later time than they have.
  [[nodiscard]] uint64_t raised() const { return raised_; }
  // Packets whose events were left out, since their times could not be changed.
  [[nodiscard]] uint64_t left_out() const { return left_out_; }

 private:
  struct Position {
    size_t next = 0;        // of the stream's packets
    uint64_t told_ns = 0;   // the viewer knows that nothing older comes
    uint64_t inserted = 0;  // packets that the stream does not have
    uint64_t offset = 0;    // where the viewer's next packet begins, if all lay in one file
    bool is_open = true;    // the viewer was not told of its end
    // The packet whose index was sent last:
    uint64_t begin = 0;
    Packet packet;
    std::string edited;  // its bytes, if they are not those of the store
    uint64_t discarded = 0;
  };

  Status Handle(uint32_t command, ByteReader payload);
  Status Connect(ByteReader payload);
  Status List();
  Status Attach(ByteReader payload);
  Status NextIndex(ByteReader payload);
  Status GetPacket(ByteReader payload);
  Status GetMetadata(ByteReader payload);
  Status NewStreams(ByteReader payload);
  Status CreateSession();
  Status Detach(ByteReader payload);

  // Appends the announced streams, and remembers their floor.
  void Announce();
  [[nodiscard]] uint64_t Floor() const;
  [[nodiscard]] bool IsDone() const;
  void PutIndex(uint32_t status, uint32_t flags, size_t stream, const Packet& packet,
                uint64_t offset);
  void PutNextPacket(size_t stream, uint32_t flags);
  void PutInserted(size_t stream, uint32_t flags);
  // The bytes of the packet as this viewer gets them, in `position`.
  void Edit(const Stream& stream, Position& position);
  [[nodiscard]] uint32_t Flags(size_t stream) const;

  const LiveTrace& trace_;
  const PacketStore& packets_;
  const uint64_t number_;
  std::vector<uint8_t> in_;
  std::string out_;
  bool is_connected_ = false;
  bool has_session_ = false;
  bool is_attached_ = false;
  bool is_done_ = false;             // the viewer was told that the session is closed
  std::vector<Position> positions_;  // of the announced streams
  std::vector<size_t> metadata_;     // bytes that were sent, by trace
  size_t called_ = 0;                // streams to which an inserted packet called its attention
  uint64_t floor_ns_ = 0;            // of streams that are announced next
  uint64_t raised_ = 0;
  uint64_t left_out_ = 0;
};

}  // namespace weft::live

#endif  // WEFT_LIB_LIVE_VIEWER_H_
