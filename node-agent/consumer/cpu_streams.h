// SPDX-License-Identifier: Apache-2.0
// The CTF streams of one channel, one for each CPU that wrote an event, and the packets that are
// being filled. Owned by the channel. A stream's count of discarded events contains all events
// that are missing in the trace: those that the program discarded, those that were overwritten,
// and those that the consumer lost. A slot is not a CPU, so a slot's missing events are counted in
// the stream of its last event's CPU.
#ifndef WEFT_NODE_AGENT_CONSUMER_CPU_STREAMS_H_
#define WEFT_NODE_AGENT_CONSUMER_CPU_STREAMS_H_

#include <algorithm>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "lib/abi/ring.h"
#include "lib/abi/stream.h"
#include "lib/base/page_buffer.h"
#include "lib/ctf/packet_writer.h"
#include "node-agent/consumer/limits.h"
#include "node-agent/consumer/state.h"
#include "node-agent/consumer/trace_sink.h"

namespace weft::consumer {

class CpuStreams {
 public:
  // `prepare` comes before a stream is added to the sink: it settles what was sealed.
  using Prepare = std::function<Status()>;

  CpuStreams(PacketSink& sink, const Uuid& trace_uuid, const ctf::Channel& channel, uint32_t cpus,
             Prepare prepare)
      : sink_(&sink),
        uuid_(trace_uuid),
        channel_(&channel),
        cpus_(cpus),
        prepare_(std::move(prepare)) {}

  // Goes on with a stream as it was when `record` was made.
  Status Restore(const StreamRecord& record);

  // kFull: call Seal, then this again. kMalformed also means that the stream's file is not
  // available. A new stream begins at `begin_ns`.
  ctf::Appended Append(uint32_t cpu, uint64_t begin_ns, uint64_t time_ns,
                       const ctf::EventClass& event, std::span<const uint8_t> body,
                       ctf::EmptyTexts* texts = nullptr) {
    if (!Has(cpu) && !Make(cpu, std::min(begin_ns, time_ns))) return ctf::Appended::kMalformed;
    if (!HasRoomIn(*streams_[cpu], body.size())) return ctf::Appended::kFull;
    return streams_[cpu]->writer.Append(time_ns, *channel_, event, body, texts);
  }

  // Returns the writer of a CPU for which Append was called.
  [[nodiscard]] ctf::PacketWriter& writer(uint32_t cpu) { return streams_[cpu]->writer; }

  // After kMalformed: is the stream's file available? If so, the record is malformed.
  [[nodiscard]] bool Has(uint32_t cpu) const {
    return cpu < streams_.size() && streams_[cpu] != nullptr;
  }

  // Did the agent not answer the last request for a file? It may still do so.
  [[nodiscard]] bool unanswered() const { return unanswered_; }

  // Counts more events as missing in the stream of `cpu`. They went missing after `after_ns`, where
  // a new stream begins, and at `until_ns` at the latest, the earliest end of the packet that
  // counts them.
  void CountMissing(uint32_t cpu, uint64_t events, uint64_t after_ns, uint64_t until_ns);
  // Returns the time of the stream's last event or, if later, the end of its last packet. 0: no
  // stream.
  [[nodiscard]] uint64_t LastTime(uint32_t cpu) const {
    return Has(cpu) ? streams_[cpu]->writer.last_time() : 0;
  }

  // A commit's packets: Seal completes those of all streams that have something new (nothing older
  // than end_time_ns comes after it), Write gives them to the sink, Settle says what became of
  // them. Write may run in another thread, beside nothing but Append and CountMissing to streams
  // that Has.
  void Seal(uint64_t end_time_ns);
  void Write();
  struct Settled {
    uint64_t delivered = 0;  // events
    uint64_t lost = 0;       // of packets that could not be written
    Status status;           // the first error of the sink, if any; all packets were tried
  };
  Settled Settle();

  // Is something not sealed yet? Packets that could not be written count as not sealed: the next
  // commit tries them again.
  [[nodiscard]] bool pending() const;
  // Returns the state as of the last Settle.
  [[nodiscard]] std::vector<StreamRecord> Records() const;
  [[nodiscard]] uint64_t packets() const;
  [[nodiscard]] uint64_t bytes() const;
  [[nodiscard]] uint64_t count() const;

 private:
  // The largest body of a record for which an empty packet has room.
  static constexpr size_t kPacketRoom = kPacketCapacity - ctf::kPacketOverheadBytes;
  static_assert(WEFT_RECORD_MAX_BYTES <= kLargePacketCapacity - ctf::kPacketOverheadBytes);
  static_assert(kLargePacketCapacity <= WEFT_STREAM_MAX_PACKET_BYTES);

  struct Stream {
    explicit Stream(const ctf::StreamConfig& config) : writer(config, std::span<uint8_t>()) {}
    ctf::PacketWriter writer;
    PageBuffer buffer;  // the writer's; none while there is nothing to be written
    size_t handle = 0;
    uint64_t missing = 0;         // so far
    uint64_t missing_until = 0;   // ns: none of them is newer
    uint64_t missing_sealed = 0;  // of them, in the last packet
    uint64_t missing_tried = 0;   // of them, in a packet that was written or could not be
    // As of the last Settle; `discarded` with the events of a packet that could not be written.
    StreamRecord settled;
  };
  struct Sealed {
    Stream* stream = nullptr;
    PageBuffer buffer;
    std::span<const uint8_t> packet;
    uint64_t events = 0;
    uint64_t missing = 0;
    uint64_t missing_before = 0;  // in the packet before
    uint64_t end = 0;             // its time
    Status written;
  };

  bool Make(uint32_t cpu, uint64_t time_ns);
  // Gives the stream a buffer in which a packet with a record of `bytes` has room. False: the
  // packet that is being filled has to be sealed first.
  bool HasRoomIn(Stream& stream, size_t bytes) {
    if (bytes <= kPacketRoom && !stream.buffer.empty()) [[likely]]
      return true;
    return GiveBufferFor(stream, bytes);
  }
  bool GiveBufferFor(Stream& stream, size_t bytes);
  void GiveBuffer(Stream& stream);
  Result<Stream*> Open(uint32_t cpu, const StreamRecord& record);

  PacketSink* sink_;
  Uuid uuid_;
  const ctf::Channel* channel_;
  uint32_t cpus_;  // no CPU has this number or a higher one
  Prepare prepare_;
  bool unanswered_ = false;
  std::vector<std::unique_ptr<Stream>> streams_;  // by CPU
  std::vector<Sealed> sealed_;
  std::vector<PageBuffer> buffers_;  // that no packet is in
  size_t kept_buffers_ = 0;          // at most this many are kept; falls by one a commit
};

}  // namespace weft::consumer

#endif  // WEFT_NODE_AGENT_CONSUMER_CPU_STREAMS_H_
