// SPDX-License-Identifier: Apache-2.0
// For tests: a LiveTrace that a test lets grow, with packets in memory.
#ifndef WEFT_LIB_LIVE_TESTING_SMALL_TRACE_H_
#define WEFT_LIB_LIVE_TESTING_SMALL_TRACE_H_

#include <memory>
#include <string>
#include <vector>

#include "lib/ctf/metadata_writer.h"
#include "lib/ctf/packet_writer.h"
#include "lib/ctf/record_builder.h"
#include "lib/live/live_trace.h"

namespace weft::live::testing {

class SmallTrace : public PacketStore {
 public:
  SmallTrace() {
    info_.uuid = {1, 2, 3};
    info_.env = ctf::MakeEnv({.hostname = "host", .trace_name = "t"});
    channel_ = ctf::MakeChannel({.id = 5, .name = "c"}).value();
    event_ =
        ctf::MakeEventClass(0, channel_, {.name = "p:e", .fields = {{.name = "n", .elem_size = 1}}})
            .value();
    trace.host = "shop";
    trace.session = "sales";
    trace.traces.push_back({.path = "pod/ust",
                            .metadata = ctf::TraceMetadata(info_) +
                                        ctf::ChannelMetadata(info_, channel_) +
                                        ctf::EventMetadata(info_, event_),
                            .uuid = info_.uuid});
  }

  // Adds a stream with one packet, which has events at these times.
  size_t AddStream(const std::vector<uint64_t>& times, uint64_t end = 0) {
    const auto cpu = static_cast<uint32_t>(trace.streams.size());
    writers_.push_back(std::make_unique<ctf::PacketWriter>(
        ctf::StreamConfig{
            .trace_uuid = info_.uuid, .channel_id = 5, .instance_id = cpu, .cpu_id = cpu},
        ctf::kMinPacketCapacity));
    trace.streams.push_back(
        {.trace = 0, .channel = "c", .class_id = 5, .instance_id = cpu, .cpu = cpu, .packets = {}});
    AddPacket(cpu, times, end);
    return cpu;
  }

  void AddPacket(size_t stream, const std::vector<uint64_t>& times, uint64_t end = 0) {
    ctf::PacketWriter& writer = *writers_[stream];
    for (const uint64_t time : times) {
      ctf::RecordBuilder body;
      body.Fixed(uint8_t{7});
      (void)writer.Append(time, channel_, event_, body.body());
    }
    const auto bytes = writer.Finish(0, end);
    const auto packet = ctf::ReadPacketInfo(bytes).value();
    trace.streams[stream].packets.push_back({.place = bytes_.size(),
                                             .bytes = bytes.size(),
                                             .content_bytes = packet.content_bytes,
                                             .begin_ns = packet.begin,
                                             .end_ns = packet.end,
                                             .sequence = packet.sequence,
                                             .discarded = packet.discarded});
    bytes_.append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  }

  [[nodiscard]] Result<std::string> Read(uint64_t place, size_t bytes) const override {
    return bytes_.substr(place, bytes);
  }

  LiveTrace trace;

 private:
  ctf::TraceInfo info_;
  ctf::Channel channel_;
  ctf::EventClass event_;
  std::vector<std::unique_ptr<ctf::PacketWriter>> writers_;
  std::string bytes_;
};

}  // namespace weft::live::testing

#endif  // WEFT_LIB_LIVE_TESTING_SMALL_TRACE_H_
