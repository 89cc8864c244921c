// SPDX-License-Identifier: Apache-2.0
// The CTF streams of one channel, one for each CPU that wrote an event, and the packets that are being
// filled. Owned by the channel.
// A stream's count of discarded events holds everything that is missing in the trace: what the program
// discarded, what was overwritten, and what the consumer lost. Slots are no CPUs, so a slot's missing
// events are counted in the stream of its last event's CPU.
#ifndef WEFT_NODE_AGENT_CONSUMER_CPU_STREAMS_H_
#define WEFT_NODE_AGENT_CONSUMER_CPU_STREAMS_H_

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "lib/ctf/packet_writer.h"
#include "node-agent/consumer/state.h"
#include "relay/store/store.h"

namespace weft::consumer {

class CpuStreams {
 public:
  // `prepare` gets the number of a stream whose file is about to be opened, and how long it shall be:
  // what a killed consumer wrote beyond its journal goes away.
  using Prepare = std::function<Status(uint32_t number, uint64_t bytes)>;

  CpuStreams(store::TraceStore& store, const ctf::Uuid& trace_uuid, const ctf::Channel& channel,
             uint32_t cpus, Prepare prepare)
      : store_(&store),
        uuid_(trace_uuid),
        channel_(&channel),
        cpus_(cpus),
        prepare_(std::move(prepare)) {}

  // Goes on with the file of a stream as it was when `record` was made.
  Status Restore(const StreamRecord& record);

  // kFull: Flush, then again. kMalformed also where the stream's file cannot be had.
  ctf::Appended Append(uint32_t cpu, uint64_t time_ns, const ctf::EventClass& event,
                       std::span<const uint8_t> body) {
    if (!Has(cpu) && !Make(cpu, time_ns)) return ctf::Appended::kMalformed;
    return streams_[cpu]->writer.Append(time_ns, *channel_, event, body);
  }

  // The writer of a CPU that Append was called for, until the next Flush.
  [[nodiscard]] ctf::PacketWriter& writer(uint32_t cpu) { return streams_[cpu]->writer; }

  // After kMalformed: false where it was not the record's fault, its file cannot be had.
  [[nodiscard]] bool Has(uint32_t cpu) const {
    return cpu < streams_.size() && streams_[cpu] != nullptr;
  }

  // The last file that could not be had was not answered for: it may be, later.
  [[nodiscard]] bool unanswered() const { return unanswered_; }

  // So many more events are missing in the stream of `cpu`.
  void CountMissing(uint32_t cpu, uint64_t events, uint64_t time_ns);

  // Writes the packets of all streams that have something new. Nothing older than end_time_ns comes
  // after it. Events of a packet that could not be written are added to `lost`, others to `delivered`.
  // The first error of the store, if any; all streams were tried.
  Status Flush(uint64_t end_time_ns, uint64_t& delivered, uint64_t& lost);

  // Something is not in a file yet.
  [[nodiscard]] bool pending() const;
  [[nodiscard]] uint64_t pending_events() const;
  [[nodiscard]] std::vector<StreamRecord> Records() const;
  [[nodiscard]] uint64_t packets() const;
  [[nodiscard]] uint64_t bytes() const;
  [[nodiscard]] uint64_t count() const;

 private:
  struct Stream {
    Stream(const ctf::StreamConfig& config, size_t capacity) : writer(config, capacity) {}
    ctf::PacketWriter writer;
    size_t handle = 0;
    uint64_t missing = 0;          // so far
    uint64_t missing_written = 0;  // of them, in the last packet
  };

  bool Make(uint32_t cpu, uint64_t time_ns);
  Result<Stream*> Open(uint32_t cpu, const StreamRecord& record);

  store::TraceStore* store_;
  ctf::Uuid uuid_;
  const ctf::Channel* channel_;
  uint32_t cpus_;  // no CPU has this number or a higher one
  Prepare prepare_;
  bool unanswered_ = false;
  std::vector<std::unique_ptr<Stream>> streams_;  // by CPU
};

}  // namespace weft::consumer

#endif  // WEFT_NODE_AGENT_CONSUMER_CPU_STREAMS_H_
