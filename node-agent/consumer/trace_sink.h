// SPDX-License-Identifier: Apache-2.0
// The destination of one trace, in its parts: metadata, packets, and the commits that make packets
// permanent. A folder (folder_sink.h) or a relay (relay_sink.h) is one; SinkRouter chooses. Used by
// the consumer's thread, but for PacketSink::Write in a commit.
#ifndef WEFT_NODE_AGENT_CONSUMER_TRACE_SINK_H_
#define WEFT_NODE_AGENT_CONSUMER_TRACE_SINK_H_

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "lib/base/result.h"
#include "lib/ipc/messages.h"
#include "node-agent/consumer/state.h"

namespace weft::consumer {

class MetadataSink {
 public:
  virtual ~MetadataSink() = default;
  virtual Status Append(std::string_view fragment) = 0;
  // Returns how many bytes were appended.
  [[nodiscard]] virtual uint64_t size() const = 0;
  // Puts `bytes` in the place of as many that were there.
  virtual Status Overwrite(uint64_t offset, std::string_view bytes) = 0;
  // kUnsupported: the metadata is at another machine.
  [[nodiscard]] virtual Result<std::string> Read(uint64_t offset, size_t size) const = 0;
};

// The streams of a trace. Each packet takes one virtual call.
class PacketSink {
 public:
  virtual ~PacketSink() = default;
  // Continues the stream of a channel and CPU as it was when `record` was made; what followed is
  // removed. The result is the handle for the functions below. kTimeout: not now.
  virtual Result<size_t> AddStream(const std::string& channel, const StreamRecord& record) = 0;
  // Returns the best size of a packet for that much content, both in bytes.
  [[nodiscard]] virtual size_t PacketBytes(size_t stream, size_t content) const = 0;
  // Writes a packet with that many events. In the function that CommitSink::Start got, the bytes
  // must stay until the commit is done; outside of it, they are the caller's again at once.
  virtual Status Write(size_t stream, std::span<const uint8_t> packet, uint64_t events) = 0;
};

// One commit at a time: its packets reach their place between Start and the moment when Done or
// Wait returns true.
class CommitSink {
 public:
  virtual ~CommitSink() = default;
  // Told that rings fill faster than commits end. It is called between two commits.
  virtual void FallBehind() = 0;
  // Begins a commit: calls `write` once, perhaps in another thread.
  virtual void Start(std::function<void()> write) = 0;
  // Everything that the commit wrote is in its place.
  [[nodiscard]] virtual bool Done() = 0;
  // Waits for that if it takes no longer than a disk does. False: it is not done.
  virtual bool Wait() = 0;
  // Does a peer decide how long a commit takes? Then the consumer does not wait for it in small
  // steps.
  [[nodiscard]] virtual bool remote() const = 0;
};

class TraceSink {
 public:
  virtual ~TraceSink() = default;

  virtual MetadataSink& metadata() = 0;
  virtual PacketSink& packets() = 0;
  virtual CommitSink& commits() = 0;

  // Can the trace take packets? An error: the reason why it cannot, and does not soon.
  virtual Result<bool> Ready() = 0;
  // Puts all of it on the disk. kTimeout: it has begun and is not finished; ask again.
  virtual Status Sync() = 0;
  // Promises that all that is stored stays, since the journal has it, and that nothing older than
  // `time_ns` will be written to any stream behind it. 0: no promise.
  virtual void Promise(uint64_t time_ns) = 0;
  // Gives the trace's counts to a peer that keeps counts, too.
  virtual void Report(const ipc::ChannelCounts& counts) = 0;
  // The last call: afterwards the bytes of packets are the caller's again.
  virtual void Forget() = 0;
};

// Opens the sinks of traces; outlives them.
class SinkMaker {
 public:
  virtual ~SinkMaker() = default;
  // Opens the definition's trace. Removes what follows its first `metadata` bytes of metadata.
  virtual Result<std::unique_ptr<TraceSink>> Open(const ipc::ChannelDefinition& definition,
                                                  uint64_t metadata) = 0;
};

// A trace whose definition names a relay goes there, any other one into its folder.
class SinkRouter : public SinkMaker {
 public:
  // Both outlive it.
  SinkRouter(SinkMaker& folders, SinkMaker& relays) : folders_(&folders), relays_(&relays) {}
  Result<std::unique_ptr<TraceSink>> Open(const ipc::ChannelDefinition& definition,
                                          uint64_t metadata) override {
    return (definition.relay.host.empty() ? folders_ : relays_)->Open(definition, metadata);
  }

 private:
  SinkMaker* folders_;
  SinkMaker* relays_;
};

}  // namespace weft::consumer

#endif  // WEFT_NODE_AGENT_CONSUMER_TRACE_SINK_H_
