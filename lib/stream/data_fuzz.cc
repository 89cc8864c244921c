// SPDX-License-Identifier: Apache-2.0
// Any bytes on a data connection, cut anywhere, with checksums repaired so that what is behind them
// is reached. Packets come out of the reader whole, and reach the archive in the order of their
// numbers, each once; what is acknowledged was stored.
//
// Input: a byte with the size of the pieces that arrive (7 bits). If its highest bit is not set,
// bytes follow as on the wire; else packets of two bytes each: number, and distance to the one
// before.
#include <algorithm>
#include <cstring>

#include "lib/stream/packet.h"
#include "lib/stream/testing/memory_archive.h"

namespace {

using namespace weft::stream;

constexpr uint64_t kHandle = 2;  // the stream's, as the archive numbers
constexpr uint8_t kNumbers = 0x80;

void Require(bool holds) {
  if (!holds) __builtin_trap();
}

struct PacketOnWire {
  weft_stream_packet header;
  weft::Bytes packet;
};

// Bytes of a connection and the packets that are whole in them.
struct Connection {
  std::vector<uint8_t> wire;
  std::vector<PacketOnWire> sent;
};

Connection Repair(weft::Bytes bytes) {
  Connection made{.wire = {bytes.begin(), bytes.end()}, .sent = {}};
  for (size_t at = 0; bytes.size() - at >= sizeof(weft_stream_packet);) {
    HeaderBytes front;
    std::copy_n(bytes.begin() + static_cast<long>(at), front.size(), front.begin());
    const auto header = DecodeHeader(front);
    at += front.size();
    if (!header || header->length > bytes.size() - at) break;
    const weft::Bytes packet = bytes.subspan(at, header->length);
    front = EncodeHeader(*header, packet);
    std::ranges::copy(front, made.wire.begin() + static_cast<long>(at - front.size()));
    made.sent.push_back({.header = *header, .packet = packet});
    at += packet.size();
  }
  return made;
}

Connection FromNumbers(weft::Bytes bytes) {
  Connection made;
  for (; bytes.size() >= 2; bytes = bytes.subspan(2)) {
    const uint64_t seq = bytes[0];
    const uint64_t back = bytes[1];
    const weft_stream_packet header{.stream_handle = kHandle,
                                    .seq = seq,
                                    .prev_seq = back == 0 ? WEFT_STREAM_NO_SEQ : seq - back,
                                    .length = 2};
    const weft::Bytes packet = bytes.first(2);
    const HeaderBytes front = EncodeHeader(header, packet);
    made.wire.insert(made.wire.end(), front.begin(), front.end());
    made.wire.insert(made.wire.end(), packet.begin(), packet.end());
    made.sent.push_back({.header = header, .packet = packet});
  }
  return made;
}

// Returns a node's messages until a stream is open.
std::string Handshake() {
  std::string wire;
  (void)Append(Offer{.versions = {WEFT_STREAM_VERSION}}, wire);
  (void)Append(
      Hello{.node = "n", .kubernetes_namespace = "ns", .trace = "t", .trace_uid = "", .ticket = ""},
      wire);
  (void)Append(OpenTrace{.trace = 1,
                         .pod = "p",
                         .pod_uid = "",
                         .container = "c",
                         .uuid = "id",
                         .path = "ust",
                         .metadata = 0},
               wire);
  (void)Append(OpenStream{.trace = 1, .stream = 1, .channel = "user"}, wire);
  return wire;
}

// The relay's side of a session with one open stream.
class Relay {
 public:
  Relay() {
    static const std::string wire = Handshake();
    const weft::Bytes bytes(reinterpret_cast<const uint8_t*>(wire.data()), wire.size());
    Require(receiver_.ReceiveControl(bytes).has_value());
    receiver_.control_out().clear();
  }

  void Receive(const weft_stream_packet& header, weft::Bytes packet) {
    if (over_) return;
    over_ = !receiver_.ReceivePacket(header, packet);
    receiver_.Flush();
    CheckAnswers();
  }

  // Checks that what is stored is a part of everything that was sent, in order.
  void CheckStored(const std::vector<PacketOnWire>& sent) {
    uint64_t next = 0;
    for (const auto& stored : Packets()) {
      Require(stored.seq >= next);
      Require(std::ranges::any_of(sent, [&](const PacketOnWire& one) {
        const bool follows =
            one.header.prev_seq == WEFT_STREAM_NO_SEQ || one.header.prev_seq + 1 <= next;
        return one.header.seq == stored.seq && one.header.stream_handle == kHandle && follows &&
               std::ranges::equal(one.packet, stored.bytes);
      }));
      next = stored.seq + 1;
    }
  }

 private:
  [[nodiscard]] const std::vector<testing::MemoryArchive::Packet>& Packets() {
    return archive_.traces["id"].streams[{"user", 0}];
  }

  void CheckAnswers() {
    std::string& out = receiver_.control_out();
    answers_.Push({reinterpret_cast<const uint8_t*>(out.data()), out.size()});
    out.clear();
    for (;;) {
      const auto message = answers_.Next();
      Require(message.has_value());
      if (!*message) return;
      const auto* stored = std::get_if<Stored>(&**message);
      if (stored == nullptr) continue;
      Require(!Packets().empty() && stored->seq <= Packets().back().seq);
    }
  }

  testing::MemoryArchive archive_;
  Receiver receiver_{archive_, 1, Receiver::Data::kDatagrams};
  MessageReader answers_;
  bool over_ = false;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size < 1) return 0;
  const weft::Bytes bytes = weft::Bytes(data, size).subspan(1);
  const size_t piece = 1 + (data[0] & ~kNumbers);
  const Connection connection = (data[0] & kNumbers) != 0 ? FromNumbers(bytes) : Repair(bytes);
  Relay relay;
  PacketReader reader(sizeof(weft_stream_packet));
  size_t whole = 0;
  for (weft::Bytes left = connection.wire; !left.empty();) {
    const auto room = reader.Room();
    const size_t n = std::min({room.size(), left.size(), piece});
    std::memcpy(room.data(), left.data(), n);
    left = left.subspan(n);
    const auto complete = reader.Received(n);
    if (!complete) break;
    if (!*complete) continue;
    Require(whole < connection.sent.size());
    const PacketOnWire& sent = connection.sent[whole++];
    Require(reader.header().seq == sent.header.seq);
    Require(std::ranges::equal(reader.packet(), sent.packet));
    relay.Receive(reader.header(), reader.packet());
  }
  Require(whole == connection.sent.size());
  relay.CheckStored(connection.sent);
  return 0;
}
