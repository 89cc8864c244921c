// SPDX-License-Identifier: Apache-2.0
// A trace's folder as a sink: lib/store, written to by the background writer's thread in a commit.
#ifndef WEFT_NODE_AGENT_CONSUMER_FOLDER_SINK_H_
#define WEFT_NODE_AGENT_CONSUMER_FOLDER_SINK_H_

#include "lib/store/store.h"
#include "node-agent/consumer/background_writer.h"
#include "node-agent/consumer/trace_sink.h"

namespace weft::consumer {

class FolderSink : public TraceSink, MetadataSink, PacketSink, CommitSink {
 public:
  FolderSink(store::TraceStore store, BackgroundWriter& writer)
      : store_(std::move(store)), writer_(&writer) {}

  MetadataSink& metadata() override { return *this; }
  PacketSink& packets() override { return *this; }
  CommitSink& commits() override { return *this; }
  Result<bool> Ready() override { return true; }
  Status Sync() override { return store_.Sync(); }
  void Promise(uint64_t) override {}
  void Report(const ipc::ChannelCounts&) override {}
  void Forget() override { (void)Wait(); }

 private:
  Status Append(std::string_view fragment) override { return store_.AppendMetadata(fragment); }
  [[nodiscard]] uint64_t size() const override { return store_.metadata_bytes(); }
  Status Overwrite(uint64_t offset, std::string_view bytes) override {
    return store_.OverwriteMetadata(offset, bytes);
  }
  [[nodiscard]] Result<std::string> Read(uint64_t offset, size_t size) const override {
    return store_.ReadMetadata(offset, size);
  }

  Result<size_t> AddStream(const std::string& channel, const StreamRecord& record) override;
  [[nodiscard]] size_t PacketBytes(size_t stream, size_t content) const override {
    return store_.PacketBytes(stream, content);
  }
  Status Write(size_t stream, std::span<const uint8_t> packet, uint64_t) override {
    return store_.WritePacket(stream, packet);
  }

  void FallBehind() override { store_.FallBehind(); }
  void Start(std::function<void()> write) override { job_ = writer_->Start(std::move(write)); }
  [[nodiscard]] bool Done() override { return writer_->Done(job_); }
  bool Wait() override {
    writer_->Wait(job_);
    return true;
  }
  [[nodiscard]] bool remote() const override { return false; }

  store::TraceStore store_;
  BackgroundWriter* writer_;
  uint64_t job_ = 0;
};

class FolderSinks : public SinkMaker {
 public:
  // Both must outlive the sinks.
  FolderSinks(store::FileMaker& maker, BackgroundWriter& writer)
      : maker_(&maker), writer_(&writer) {}
  Result<std::unique_ptr<TraceSink>> Open(const ipc::ChannelDefinition& definition,
                                          uint64_t metadata) override;

 private:
  store::FileMaker* maker_;
  BackgroundWriter* writer_;
};

}  // namespace weft::consumer

#endif  // WEFT_NODE_AGENT_CONSUMER_FOLDER_SINK_H_
