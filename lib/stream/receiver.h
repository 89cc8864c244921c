// SPDX-License-Identifier: Apache-2.0
// The relay's side of one session: turns a node's messages into calls of an Archive, which keeps
// traces beyond sessions. It has no sockets, no threads and no clock. One thread owns it.
//
// The peer is a node's consumer, which reads bytes that tenants wrote: every byte of it is
// foreign. After an error of any function the session is over; stored packets stay.
//
// Invariants
//   1. A stream's packets reach the Archive in the order of their numbers, each once. A packet
//      that is there already is acknowledged again. A packet behind a gap waits (their number is
//      bounded), and the receiver asks for the gap.
//   2. A packet is acknowledged only after the Archive has stored it.
#ifndef WEFT_LIB_STREAM_RECEIVER_H_
#define WEFT_LIB_STREAM_RECEIVER_H_

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "lib/stream/control.h"
#include "lib/stream/packet.h"

namespace weft::stream {

// The place where streams are stored. Keys are the archive's names. They stay valid until any
// session opens the trace again. Then its functions fail with kClosed, so that data that an old
// connection still had cannot get in between.
class Archive {
 public:
  virtual ~Archive() = default;

  struct OpenedTrace {
    uint64_t key = 0;
    uint64_t metadata = 0;  // bytes
  };
  // Cuts the metadata to what the node knows. kPermission: this node may not; kInvalid: a name is
  // malformed.
  virtual Result<OpenedTrace> OpenTrace(const Hello& who, const OpenTrace& what) = 0;
  virtual Status WriteMetadata(uint64_t trace, uint64_t offset, std::string_view text) = 0;

  struct OpenedStream {
    uint64_t handle = 0;  // of all sessions, never used again
    uint64_t next = 0;    // the first packet that is not there
  };
  // Cuts the stream before what.next.
  virtual Result<OpenedStream> OpenStream(uint64_t trace, const OpenStream& what) = 0;
  // Stores the next packet of the stream, perhaps behind a gap that will never be filled.
  virtual Status StorePacket(uint64_t handle, const weft_stream_packet& header, Bytes packet) = 0;

  virtual void Lost(uint64_t handle, const PacketsLost& what) = 0;
  // All packets of the stream before `next` are stored, and stay.
  virtual void Keep(uint64_t handle, uint64_t next) = 0;
  // Nothing older than `time` comes to any stream of the trace behind its kept packets. The trace
  // does not follow a session any more.
  virtual void Promise(uint64_t trace, uint64_t time) = 0;
  // From now on what is promised of all of a session's traces holds for this one, too.
  virtual void Follow(uint64_t trace, uint64_t session) = 0;
  // Promises this of all traces that follow the session.
  virtual void PromiseAll(uint64_t session, uint64_t time) = 0;
  virtual void Report(uint64_t trace, const Losses& losses) = 0;

  // Puts all of the trace on the disk.
  virtual Result<TraceEnded> EndTrace(uint64_t trace) = 0;
  // Called when the session is over, for each of its traces.
  virtual void CloseTrace(uint64_t trace) = 0;
  // Called after that.
  virtual void CloseSession(uint64_t session) = 0;

  // Puts all open traces on the disk.
  virtual Status Sync() = 0;
  // Called about once in a second: does what is due without a message.
  virtual void Tick() {}
};

class Receiver {
 public:
  // TCP loses nothing while it is there: a packet that was sent comes, sooner or later.
  enum class Data : uint8_t { kInOrder, kDatagrams };

  // kClosed: the caller decides about each hello, and then calls Welcome or Refuse.
  enum class Door : uint8_t { kOpen, kClosed };

  // `session`: must not be guessable. `archive` outlives the receiver.
  Receiver(Archive& archive, uint64_t session, Data data, Door door = Door::kOpen)
      : archive_(&archive), session_(session), data_(data), door_(door) {}

  Status ReceiveControl(Bytes bytes);
  // Takes a packet of this session's data connection, whole and with a right checksum.
  Status ReceivePacket(const weft_stream_packet& header, Bytes packet);
  // The bytes to be sent; the caller takes off what it sent. Acknowledgements of packets come with
  // Flush.
  [[nodiscard]] std::string& control_out() { return control_out_; }
  void Flush();
  // Is there a hello that the caller has not decided about?
  [[nodiscard]] bool awaits_decision() const { return phase_ == Phase::kHello; }
  // Accepts the session of that hello.
  Status Welcome();
  // Says why the session ends.
  void Refuse(const Error& error);
  // Ends the session: gives the archive back what the session opened. Call no other function
  // afterwards.
  void Close();

  [[nodiscard]] uint64_t session() const { return session_; }
  // May the node open a data connection?
  [[nodiscard]] bool welcomed() const { return phase_ == Phase::kWelcome; }
  [[nodiscard]] const Hello& hello() const { return hello_; }
  [[nodiscard]] size_t open_streams() const { return streams_.size(); }

 private:
  enum class Phase : uint8_t { kNew, kChosen, kHello, kWelcome };
  struct Held {
    weft_stream_packet header;
    std::vector<uint8_t> packet;
  };
  struct Stream {
    uint64_t next = 0;              // the first packet that is not stored
    uint64_t asked = 0;             // packets before this one were asked for, or are on their way
    uint64_t at_sent = 0;           // `next` when the last `sent` came
    std::map<uint64_t, Held> held;  // behind a gap
  };

  Status Handle(const Offer& message);
  Status Handle(const Hello& message);
  Status Handle(const OpenTrace& message);
  Status Handle(const Metadata& message);
  Status Handle(const OpenStream& message);
  Status Handle(const Sent& message);
  Status Handle(const Beacon& message);
  Status Handle(const Losses& message);
  Status Handle(const PacketsLost& message);
  Status Handle(const EndTrace& message);
  static Status Handle(const Refusal& message);
  template <typename T>
  static Status Handle(const T&) {
    return Fail(ErrorCode::kCorrupt, "node: a message that only relays send");
  }
  Status Say(const Message& message);
  Result<uint64_t> TraceKey(uint32_t trace) const;
  Result<Stream*> Find(uint64_t handle);
  Status Store(uint64_t handle, Stream& stream, const weft_stream_packet& header, Bytes packet);
  Status StoreHeld(uint64_t handle, Stream& stream);
  void Hold(Stream& stream, const weft_stream_packet& header, Bytes packet);
  // Everything before `end` was sent; asks for what is not here.
  Status AskFor(uint64_t handle, Stream& stream, uint64_t end, bool again);

  Archive* archive_;
  uint64_t session_;
  Data data_;
  Door door_;
  Phase phase_ = Phase::kNew;
  Hello hello_;
  MessageReader reader_;
  std::string control_out_;
  std::map<uint32_t, uint64_t> traces_;  // the node's number -> the archive's key
  std::set<uint32_t> apart_;             // traces that have no part in the promise of all
  std::map<uint64_t, Stream> streams_;   // by handle
  std::set<uint64_t> unacknowledged_;    // handles
  size_t held_packets_ = 0;
  size_t held_bytes_ = 0;
};

}  // namespace weft::stream

#endif  // WEFT_LIB_STREAM_RECEIVER_H_
