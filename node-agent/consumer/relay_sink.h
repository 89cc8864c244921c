// SPDX-License-Identifier: Apache-2.0
// Relays as sinks: a trace's packets go over the link that its Trace has to its relay. Used by the
// service's thread.
#ifndef WEFT_NODE_AGENT_CONSUMER_RELAY_SINK_H_
#define WEFT_NODE_AGENT_CONSUMER_RELAY_SINK_H_

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "lib/ipc/messages.h"
#include "node-agent/consumer/relay_link.h"
#include "node-agent/consumer/trace_sink.h"

namespace weft::consumer {

class RelaySink : public TraceSink, MetadataSink, PacketSink, CommitSink {
 public:
  // `link` is this sink's, too.
  RelaySink(std::shared_ptr<RelayLink> link, stream::TraceName name, uint64_t metadata);
  RelaySink(const RelaySink&) = delete;
  RelaySink& operator=(const RelaySink&) = delete;
  ~RelaySink() override;

  MetadataSink& metadata() override { return *this; }
  PacketSink& packets() override { return *this; }
  CommitSink& commits() override { return *this; }
  Result<bool> Ready() override;
  Status Sync() override;
  void Promise(uint64_t time_ns) override;
  void Report(const ipc::ChannelCounts& counts) override;
  void Forget() override;

 private:
  Status Append(std::string_view fragment) override;
  [[nodiscard]] uint64_t size() const override { return metadata_bytes_; }
  Status Overwrite(uint64_t offset, std::string_view bytes) override;
  [[nodiscard]] Result<std::string> Read(uint64_t offset, size_t size) const override;

  Result<size_t> AddStream(const std::string& channel, const StreamRecord& record) override;
  [[nodiscard]] size_t PacketBytes(size_t, size_t content) const override { return content; }
  Status Write(size_t stream, std::span<const uint8_t> packet, uint64_t events) override;

  void FallBehind() override {}
  void Start(std::function<void()> write) override;
  [[nodiscard]] bool Done() override;
  bool Wait() override { return Done(); }
  [[nodiscard]] bool remote() const override { return true; }

  std::shared_ptr<RelayLink> link_;
  uint32_t trace_;  // of the sender
  uint64_t metadata_bytes_;
  std::vector<uint32_t> streams_;
  bool in_commit_ = false;
  std::deque<std::vector<uint8_t>> own_;  // packets whose bytes the caller took back
};

// The links to relays, by relay and Trace.
class RelayLinks : public SinkMaker {
 public:
  using Ask = std::function<Status(ipc::ConnectionRequest)>;
  using Notice = std::function<void(const std::string&)>;
  using Refused = std::function<void(ipc::RelayRefusal)>;
  RelayLinks(Ask ask, Notice notice, Refused refused)
      : ask_(std::move(ask)), notice_(std::move(notice)), refused_(std::move(refused)) {}

  // Opens a sink for a definition that names a relay.
  Result<std::unique_ptr<TraceSink>> Open(const ipc::ChannelDefinition& definition,
                                          uint64_t metadata) override;

  // Returns true if something arrived.
  bool Pump(uint64_t now_ns);
  void AddPolls(std::vector<pollfd>& polls);
  void Answer(ipc::ConnectionAnswer answer, uint64_t now_ns);
  void NewAgent();

 private:
  struct Asked {
    std::weak_ptr<RelayLink> link;
    bool data = false;
  };

  Ask ask_;
  Notice notice_;
  Refused refused_;
  std::map<std::string, std::weak_ptr<RelayLink>> links_;
  std::map<uint64_t, Asked> asked_;  // by request
  uint64_t next_request_ = 1;
};

}  // namespace weft::consumer

#endif  // WEFT_NODE_AGENT_CONSUMER_RELAY_SINK_H_
