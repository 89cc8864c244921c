// SPDX-License-Identifier: Apache-2.0
// The messages of node and relay on the control connection, as plain structs, and as bytes: a u32
// (little-endian) with the length, then a JSON object whose member "type" names the struct.
// docs/formats/stream.md describes the conversation; sender.h and receiver.h carry it out. A
// receiver ignores members that it does not know, and refuses a message that lacks a member it
// needs. Thread-safety: plain values and pure functions.
#ifndef WEFT_LIB_STREAM_CONTROL_H_
#define WEFT_LIB_STREAM_CONTROL_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <variant>
#include <vector>

#include "lib/base/bytes.h"
#include "lib/base/result.h"
#include "lib/fields/fields.h"

namespace weft::stream {

// --- node -> relay ---------------------------------------------------------------------------

// The first message. The relay answers with the version that both use from then on.
struct Offer {
  std::vector<uint32_t> versions;

  static constexpr std::string_view kName = "offer";
  static constexpr auto Fields() { return std::tuple(Field("versions", &Offer::versions)); }
};

// Names the node, and the Trace that it speaks for.
struct Hello {
  std::string node;
  std::string kubernetes_namespace;
  std::string trace;
  std::string trace_uid;  // the Trace's UUID, so that one made again is another; "" in local mode
  std::string ticket;     // what proves it; "" where the relay asks for none

  static constexpr std::string_view kName = "hello";
  static constexpr auto Fields() {
    return std::tuple(Field("node", &Hello::node), Field("namespace", &Hello::kubernetes_namespace),
                      Field("trace", &Hello::trace), Field("trace_uid", &Hello::trace_uid),
                      Field("ticket", &Hello::ticket));
  }
};

// A CTF trace of a container. `trace` is the node's number for it. The answer is TraceOpened.
struct OpenTrace {
  uint32_t trace = 0;
  std::string pod;
  std::string pod_uid;
  std::string container;
  std::string uuid;  // of the CTF trace
  std::string path;  // its folder below the container's: "ust/uid/1000/64-bit"
  // Bytes of metadata that the node knows to be stored. The relay removes what it has behind them:
  // it is sent again.
  uint64_t metadata = 0;

  static constexpr std::string_view kName = "open-trace";
  static constexpr auto Fields() {
    return std::tuple(Field("trace", &OpenTrace::trace), Field("pod", &OpenTrace::pod),
                      Field("pod_uid", &OpenTrace::pod_uid),
                      Field("container", &OpenTrace::container), Field("uuid", &OpenTrace::uuid),
                      Field("path", &OpenTrace::path), Field("metadata", &OpenTrace::metadata));
  }
};

// Bytes of the trace's metadata at `offset`: behind the existing ones, or in place of equally many.
// The answer is MetadataStored.
struct Metadata {
  uint32_t trace = 0;
  uint64_t offset = 0;
  std::string text;

  static constexpr std::string_view kName = "metadata";
  static constexpr auto Fields() {
    return std::tuple(Field("trace", &Metadata::trace), Field("offset", &Metadata::offset),
                      Field("text", &Metadata::text));
  }
};

// `stream` is the node's number of it. Answered by StreamOpened.
struct OpenStream {
  uint32_t trace = 0;
  uint32_t stream = 0;
  std::string channel;
  uint32_t cpu = 0;
  // The first packet that the node does not know to be stored. The relay removes what it has from
  // there on: it comes again.
  uint64_t next = 0;
  uint64_t events = 0;  // in the packets before it

  static constexpr std::string_view kName = "open-stream";
  static constexpr auto Fields() {
    return std::tuple(Field("trace", &OpenStream::trace), Field("stream", &OpenStream::stream),
                      Field("channel", &OpenStream::channel), Field("cpu", &OpenStream::cpu),
                      Field("next", &OpenStream::next), Field("events", &OpenStream::events));
  }
};

// The last packet of a stream that was sent is `last`. A relay that gets datagrams asks for what it
// lacks.
struct SentPacket {
  uint64_t handle = 0;
  uint64_t last = 0;

  static constexpr auto Fields() {
    return std::tuple(Field("handle", &SentPacket::handle), Field("last", &SentPacket::last));
  }
};
struct Sent {
  std::vector<SentPacket> streams;

  static constexpr std::string_view kName = "sent";
  static constexpr auto Fields() { return std::tuple(Field("streams", &Sent::streams)); }
};

// The packets of a stream before `next` are in the node's journal: it will not have them cut off.
struct KeptPackets {
  uint64_t handle = 0;
  uint64_t next = 0;

  static constexpr auto Fields() {
    return std::tuple(Field("handle", &KeptPackets::handle), Field("next", &KeptPackets::next));
  }
};
// The promise of one trace, where it is not that of all; time 0: none.
struct TraceTime {
  uint32_t trace = 0;
  uint64_t time = 0;

  static constexpr auto Fields() {
    return std::tuple(Field("trace", &TraceTime::trace), Field("time", &TraceTime::time));
  }
};
// Nothing older than `time` (ns, the traces' clock) comes to any stream of the session's open
// traces behind its kept packets. `traces` names those for which this is not so, with times of
// their own. One message is for all traces: a session may have 1024, and sends 50 beacons a second.
// `kept` names the streams that have more kept packets than a message of this connection said
// before.
struct Beacon {
  uint64_t time = 0;
  std::vector<TraceTime> traces;
  std::vector<KeptPackets> kept;

  static constexpr std::string_view kName = "beacon";
  static constexpr auto Fields() {
    return std::tuple(Field("time", &Beacon::time), Field("traces", &Beacon::traces),
                      Field("kept", &Beacon::kept));
  }
};

// Totals since the trace began: events that the tracer discarded, by reason, and that the node
// lost, by "stage/reason".
struct Losses {
  uint32_t trace = 0;
  std::map<std::string, uint64_t> discarded;
  std::map<std::string, uint64_t> lost;

  static constexpr std::string_view kName = "losses";
  static constexpr auto Fields() {
    return std::tuple(Field("trace", &Losses::trace), Field("discarded", &Losses::discarded),
                      Field("lost", &Losses::lost));
  }
};

// The packets from `first` to `last` will never come.
struct PacketsLost {
  uint64_t handle = 0;
  uint64_t first = 0;
  uint64_t last = 0;
  std::string stage;
  std::string reason;

  static constexpr std::string_view kName = "packets-lost";
  static constexpr auto Fields() {
    return std::tuple(Field("handle", &PacketsLost::handle), Field("first", &PacketsLost::first),
                      Field("last", &PacketsLost::last), Field("stage", &PacketsLost::stage),
                      Field("reason", &PacketsLost::reason));
  }
};

// All of the trace was sent. The answer is TraceEnded, when the trace is on the disk.
struct EndTrace {
  uint32_t trace = 0;

  static constexpr std::string_view kName = "end-trace";
  static constexpr auto Fields() { return std::tuple(Field("trace", &EndTrace::trace)); }
};

// --- relay -> node ---------------------------------------------------------------------------

struct Chosen {
  uint32_t version = 0;

  static constexpr std::string_view kName = "chosen";
  static constexpr auto Fields() { return std::tuple(Field("version", &Chosen::version)); }
};

// Answers Hello. The data connection begins with this session's number.
struct Welcome {
  uint64_t session = 0;

  static constexpr std::string_view kName = "welcome";
  static constexpr auto Fields() { return std::tuple(Field("session", &Welcome::session)); }
};

// `metadata`: the bytes that the relay has now.
struct TraceOpened {
  uint32_t trace = 0;
  uint64_t metadata = 0;

  static constexpr std::string_view kName = "trace-opened";
  static constexpr auto Fields() {
    return std::tuple(Field("trace", &TraceOpened::trace),
                      Field("metadata", &TraceOpened::metadata));
  }
};

struct MetadataStored {
  uint32_t trace = 0;
  uint64_t offset = 0;
  uint64_t bytes = 0;

  static constexpr std::string_view kName = "metadata-stored";
  static constexpr auto Fields() {
    return std::tuple(Field("trace", &MetadataStored::trace),
                      Field("offset", &MetadataStored::offset),
                      Field("bytes", &MetadataStored::bytes));
  }
};

// `next`: the first packet that the relay does not have; at most the one that the node named.
struct StreamOpened {
  uint32_t stream = 0;
  uint64_t handle = 0;
  uint64_t next = 0;

  static constexpr std::string_view kName = "stream-opened";
  static constexpr auto Fields() {
    return std::tuple(Field("stream", &StreamOpened::stream),
                      Field("handle", &StreamOpened::handle), Field("next", &StreamOpened::next));
  }
};

// Every packet up to this one is stored.
struct Stored {
  uint64_t handle = 0;
  uint64_t seq = 0;

  static constexpr std::string_view kName = "stored";
  static constexpr auto Fields() {
    return std::tuple(Field("handle", &Stored::handle), Field("seq", &Stored::seq));
  }
};

// The packets from `first` to `last` are missing.
struct Gap {
  uint64_t handle = 0;
  uint64_t first = 0;
  uint64_t last = 0;

  static constexpr std::string_view kName = "gap";
  static constexpr auto Fields() {
    return std::tuple(Field("handle", &Gap::handle), Field("first", &Gap::first),
                      Field("last", &Gap::last));
  }
};

struct TraceEnded {
  uint32_t trace = 0;
  uint64_t packets = 0;
  uint64_t bytes = 0;

  static constexpr std::string_view kName = "trace-ended";
  static constexpr auto Fields() {
    return std::tuple(Field("trace", &TraceEnded::trace), Field("packets", &TraceEnded::packets),
                      Field("bytes", &TraceEnded::bytes));
  }
};

// --- both ------------------------------------------------------------------------------------

// The last message: why the connection ends. A relay that refuses an offer names the versions that
// it knows, since version 2.
struct Refusal {
  std::string reason;
  std::vector<uint32_t> versions;

  static constexpr std::string_view kName = "refusal";
  static constexpr auto Fields() {
    return std::tuple(Field("reason", &Refusal::reason),
                      OptionalField("versions", &Refusal::versions));
  }
};

using Message = std::variant<Offer, Hello, OpenTrace, Metadata, OpenStream, Sent, Beacon, Losses,
                             PacketsLost, EndTrace, Chosen, Welcome, TraceOpened, MetadataStored,
                             StreamOpened, Stored, Gap, TraceEnded, Refusal>;

// Appends the message with its length. kInvalid: a text is no UTF-8; kLimit: the message is too
// long.
Status Append(const Message& message, std::string& out);

// Takes the JSON alone. kCorrupt: not a message, or a member is missing or of another type.
Result<Message> Decode(std::string_view json);

std::string_view MessageName(const Message& message);

// Takes messages out of a stream of bytes, however they were cut.
class MessageReader {
 public:
  void Push(Bytes bytes);
  // std::nullopt: a part of it is not there yet. After an error, do not call it again.
  Result<std::optional<Message>> Next();

 private:
  std::string buffer_;
  size_t at_ = 0;
};

}  // namespace weft::stream

#endif  // WEFT_LIB_STREAM_CONTROL_H_
