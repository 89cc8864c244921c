// SPDX-License-Identifier: Apache-2.0
// The node's side of one session with a relay: the traces of one Trace on this node, their
// metadata, streams and packets. It holds what the relay has not stored yet, and decides what to
// send; it has no sockets, no threads and no clock. One thread owns it.
//
// Life of a connection: call Connected(); the bytes of control_out() go to the relay, its answers
// into ReceiveControl(). When wants_data() is true, make a second connection: call
// DataConnected(); then NextData()'s bytes go there. When either connection ends, or a function
// asks for it, call Disconnected() and begin again. Packets that were put and are not stored are
// then sent again.
//
// Invariants
//   1. A packet is sent only when the relay has stored all metadata that was written before it.
//   2. The bytes of a packet are the caller's; they must stay until stored(stream) is beyond its
//      seq.
//   3. A stream's packets have successive numbers. The relay's messages are checked: it cannot
//      have stored what was not sent.
//
// Memory is bounded by what the caller puts: packets by reference, and metadata until it is
// stored.
#ifndef WEFT_LIB_STREAM_SENDER_H_
#define WEFT_LIB_STREAM_SENDER_H_

#include <cstdint>
#include <deque>
#include <map>
#include <string>
#include <vector>

#include "lib/stream/control.h"
#include "lib/stream/packet.h"

namespace weft::stream {

// Names a CTF trace to the relay.
struct TraceName {
  std::string pod;
  std::string pod_uid;
  std::string container;
  std::string uuid;
  std::string path;
};

class Sender {
 public:
  explicit Sender(Hello hello) : hello_(std::move(hello)) {}

  // --- what there is to be sent ------------------------------------------------------------------

  // `metadata`: bytes of its metadata that an earlier start of this process knew to be stored.
  uint32_t AddTrace(TraceName name, uint64_t metadata);
  // Behind what was written (`offset` is its end), or in place of it.
  void WriteMetadata(uint32_t trace, uint64_t offset, std::string_view text);
  // `next`: the first packet that is not known to be stored; `events`: the events in the packets
  // before it.
  uint32_t AddStream(uint32_t trace, std::string channel, uint32_t cpu, uint64_t next,
                     uint64_t events);
  // Adds the next packet of the stream.
  void Put(uint32_t stream, uint32_t events, Bytes packet);
  // Tells the relay that all packets of the trace that were stored so far are in the journal, and
  // that nothing older than `time` comes behind them. No packet may be unacknowledged.
  void Promise(uint32_t trace, uint64_t time);
  // Totals; said when they change, and again on every connection.
  void Report(const Losses& losses);
  // Says that all was put. The relay gets this when all is stored; more may still be put, and the
  // trace ended again.
  void EndTrace(uint32_t trace);
  void ForgetTrace(uint32_t trace);

  // --- what became of it -------------------------------------------------------------------------

  // Has the relay opened the trace's folder and stored its metadata?
  [[nodiscard]] bool opened(uint32_t trace) const;
  // Metadata and packets.
  [[nodiscard]] bool all_stored(uint32_t trace) const;
  [[nodiscard]] bool all_stored() const;  // of all traces
  // Has the relay reported that the trace is on the disk?
  [[nodiscard]] bool ended(uint32_t trace) const;
  // Returns the first packet that is not stored.
  [[nodiscard]] uint64_t stored(uint32_t stream) const { return streams_.at(stream).stored; }

  // --- the connection ----------------------------------------------------------------------------

  // Sets the ticket of the hello. Before Connected.
  void SetTicket(std::string ticket) { hello_.ticket = std::move(ticket); }
  void Connected();
  void DataConnected();
  void Disconnected();
  [[nodiscard]] bool wants_data() const { return phase_ == Phase::kWelcome && !data_; }
  // After an error the connection is of no use; kPermission: the relay refused, and the message
  // says why; kUnsupported: one of the two is older than the other.
  Status ReceiveControl(Bytes bytes);
  // The bytes to be sent; the caller takes off what it sent.
  [[nodiscard]] std::string& control_out() { return control_out_; }
  // Sends a beacon for all traces, if one has a new promise. Call it from time to time, and soon if
  // there are kept packets that the relay does not know of.
  void SendBeacons();
  [[nodiscard]] bool has_kept_more() const { return has_kept_more_; }
  // Names the last packet that was sent of each stream. If data are datagrams, call it from time to
  // time.
  void SendSent();

  // The next bytes of the data connection, in two parts of which one may be empty; if both are
  // empty, there is nothing to send now.
  struct Out {
    Bytes front;
    Bytes packet;
  };
  [[nodiscard]] Out NextData();
  void DataSent(size_t bytes);

  // Has the relay stored packets that were sent on this connection?
  [[nodiscard]] bool has_progress() const { return has_progress_; }
  // Packets that were sent again.
  [[nodiscard]] uint64_t resent() const { return resent_; }

 private:
  enum class Phase : uint8_t { kDown, kOffered, kChosen, kWelcome };

  struct Piece {
    uint64_t offset = 0;
    std::string text;
  };
  struct Trace {
    TraceName name;
    uint64_t metadata = 0;     // bytes that are stored
    std::deque<Piece> pieces;  // not known to be stored, in order
    Losses losses;
    bool has_losses = false;
    bool asked = false;  // on this connection: to be opened
    bool open = false;   // on this connection
    bool was_open = false;
    bool end_wanted = false;
    bool end_asked = false;
    bool ended = false;
    std::vector<uint32_t> streams;
    uint64_t promise = 0;
    bool beacon_due = false;
    bool may_promise = false;  // what MayPromise returned for the beacon that is being made
  };
  struct Packet {
    uint32_t events = 0;
    Bytes bytes;
  };
  struct Stream {
    uint32_t trace = 0;
    std::string channel;
    uint32_t cpu = 0;
    uint64_t stored = 0;         // the first packet that is not
    uint64_t events = 0;         // in those before it
    std::deque<Packet> packets;  // from `stored` on
    uint64_t sent = 0;           // the next one to be sent
    uint64_t reach = 0;          // the first that was never sent on this connection
    uint64_t ever = 0;           // the first that was never sent
    uint64_t handle = 0;
    bool open = false;
    uint64_t kept = 0;  // the first packet that the journal may not have
    uint64_t said = 0;  // `kept` as the relay knows it
  };

  void Say(const Message& message);
  void OpenTraces();
  void Open(uint32_t number, Trace& trace);
  void OpenStreams(uint32_t number);
  void SayEnds();
  void SayMetadata(uint32_t number, const Piece& piece);
  Status Handle(const Chosen& message);
  Status Handle(const Welcome& message);
  Status Handle(const TraceOpened& message);
  Status Handle(const MetadataStored& message);
  Status Handle(const StreamOpened& message);
  Status Handle(const Stored& message);
  Status Handle(const Gap& message);
  Status Handle(const TraceEnded& message);
  [[nodiscard]] Status Handle(const Refusal& message) const;
  template <typename T>
  static Status Handle(const T&) {
    return Fail(ErrorCode::kCorrupt, "relay: a message that only nodes send");
  }
  // Returns the stream's number; 0: it was forgotten meanwhile.
  [[nodiscard]] uint32_t ByHandle(uint64_t handle) const;
  [[nodiscard]] bool MetadataIsStored(const Trace& trace) const;
  [[nodiscard]] bool PacketsAreStored(uint32_t trace) const;
  void SayLost(const Stream& stream, uint64_t first, uint64_t last, const char* reason);
  bool PickPacket();
  void Release(uint32_t number, Stream& stream, uint64_t end);
  void KeepOut();
  [[nodiscard]] bool MayPromise(const Trace& trace) const;

  Hello hello_;
  std::map<uint32_t, Trace> traces_;
  std::map<uint32_t, Stream> streams_;
  std::map<uint64_t, uint32_t> handles_;  // of this connection
  uint32_t next_trace_ = 1;
  uint32_t next_stream_ = 1;

  Phase phase_ = Phase::kDown;
  bool data_ = false;
  MessageReader reader_;
  std::string control_out_;

  // The hello or packet that is being sent on the data connection:
  HelloBytes hello_bytes_{};
  HeaderBytes header_bytes_{};
  Bytes out_front_;
  Bytes out_packet_;
  std::vector<uint8_t> out_kept_;
  uint64_t out_seq_ = 0;
  uint32_t out_stream_ = 0;  // also whose turn was last
  uint64_t session_ = 0;
  uint64_t resent_ = 0;
  bool has_kept_more_ = false;
  bool has_progress_ = false;
};

}  // namespace weft::stream

#endif  // WEFT_LIB_STREAM_SENDER_H_
