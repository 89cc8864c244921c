// SPDX-License-Identifier: Apache-2.0
// Where one trace's metadata and packets go: a folder (folder_sink.h) or a relay (relay_sink.h).
// One virtual call a packet. Used by the consumer's thread, but for Write in a commit.
//
// A commit's packets are put there between Start and the moment when Done or Wait says so. Their
// bytes stay until then.
#ifndef WEFT_NODE_AGENT_CONSUMER_PACKET_SINK_H_
#define WEFT_NODE_AGENT_CONSUMER_PACKET_SINK_H_

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "lib/base/result.h"
#include "lib/ipc/messages.h"
#include "node-agent/consumer/state.h"

namespace weft::consumer {

class PacketSink {
 public:
  virtual ~PacketSink() = default;

  virtual Status AppendMetadata(std::string_view fragment) = 0;
  [[nodiscard]] virtual uint64_t metadata_bytes() const = 0;
  // In place of as many bytes.
  virtual Status OverwriteMetadata(uint64_t offset, std::string_view bytes) = 0;
  // kUnsupported: it is not at hand.
  [[nodiscard]] virtual Result<std::string> ReadMetadata(uint64_t offset, size_t size) const = 0;

  // Goes on with the stream of a channel and CPU as it was when `record` was made; what came behind
  // it goes away. The result is the handle for the functions below. kTimeout: not now.
  virtual Result<size_t> AddStream(const std::string& channel, const StreamRecord& record) = 0;
  // How many bytes a packet with so much content had best have.
  [[nodiscard]] virtual size_t PacketBytes(size_t stream, size_t content) const = 0;
  // A packet with so many events. Within a commit, in the function that Start got; or outside one,
  // then the bytes are the caller's again at once.
  virtual Status Write(size_t stream, std::span<const uint8_t> packet, uint64_t events) = 0;

  // Rings fill faster than commits end. Between two commits.
  virtual void FallBehind() = 0;
  // Begins a commit: calls `write` once, perhaps in another thread.
  virtual void Start(std::function<void()> write) = 0;
  // All that was written is where it belongs. Start comes before it.
  [[nodiscard]] virtual bool Done() = 0;
  // Waits for it, where that takes no longer than a disk does. False: it is not done.
  virtual bool Wait() = 0;
  // Done may take as long as a peer likes: the consumer does not wait for it in small steps.
  [[nodiscard]] virtual bool remote() const = 0;

  // The trace can take packets. An error: why not, and it is not expected to change soon.
  virtual Result<bool> Ready() = 0;
  // All of it on the disk. kTimeout: asked for, not yet done; ask again.
  virtual Status Sync() = 0;

  // Nothing older than `time_ns` will be written to any stream.
  virtual void Promise(uint64_t time_ns) = 0;
  // The trace's counts, for those who count with it.
  virtual void Report(const ipc::ChannelCounts& counts) = 0;

  // Nothing more is asked of it; the bytes of packets are the caller's again.
  virtual void Forget() = 0;
};

// Opens the sinks of traces; outlives them.
class SinkMaker {
 public:
  virtual ~SinkMaker() = default;
  // Opens the definition's trace. What is behind its first `metadata` bytes of metadata goes away.
  virtual Result<std::unique_ptr<PacketSink>> Open(const ipc::ChannelDefinition& definition,
                                                   uint64_t metadata) = 0;
};

}  // namespace weft::consumer

#endif  // WEFT_NODE_AGENT_CONSUMER_PACKET_SINK_H_
