// SPDX-License-Identifier: Apache-2.0
// An archive for tests, in memory: traces by their UUID. Checks what every archive may rely on:
// packets come in order, no session uses a key that another one took over, and no packet that a
// node keeps is cut off.
#ifndef WEFT_LIB_STREAM_TESTING_MEMORY_ARCHIVE_H_
#define WEFT_LIB_STREAM_TESTING_MEMORY_ARCHIVE_H_

#include <cassert>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "lib/stream/receiver.h"

namespace weft::stream::testing {

class MemoryArchive : public Archive {
 public:
  struct Packet {
    uint64_t seq = 0;
    uint32_t events = 0;
    std::vector<uint8_t> bytes;
  };
  struct Trace {
    std::string metadata;
    std::map<std::pair<std::string, uint32_t>, std::vector<Packet>> streams;
    std::map<std::pair<std::string, uint32_t>, uint64_t> kept;
    Losses losses;
    uint64_t key = 0;
    uint64_t ended = 0;    // times
    uint64_t promise = 0;  // the latest
    uint64_t session = 0;  // that it follows
  };

  Result<OpenedTrace> OpenTrace(const Hello&, const stream::OpenTrace& what) override {
    Trace& trace = traces[what.uuid];
    if (trace.metadata.size() > what.metadata) trace.metadata.resize(what.metadata);
    trace.key = ++last_;
    keys_[trace.key] = what.uuid;
    return OpenedTrace{.key = trace.key, .metadata = trace.metadata.size()};
  }

  Status WriteMetadata(uint64_t key, uint64_t offset, std::string_view text) override {
    Trace* trace = Find(key);
    if (trace == nullptr) return Fail(ErrorCode::kClosed, "taken over");
    if (offset > trace->metadata.size()) return Fail(ErrorCode::kInvalid, "a hole");
    trace->metadata.resize(std::max(trace->metadata.size(), offset + text.size()));
    trace->metadata.replace(offset, text.size(), text);
    return {};
  }

  Result<OpenedStream> OpenStream(uint64_t key, const stream::OpenStream& what) override {
    Trace* trace = Find(key);
    if (trace == nullptr) return Fail(ErrorCode::kClosed, "taken over");
    assert((what.next >= trace->kept[{what.channel, what.cpu}]));
    auto& packets = trace->streams[{what.channel, what.cpu}];
    while (!packets.empty() && packets.back().seq >= what.next) packets.pop_back();
    handles_[++last_] = {key, {what.channel, what.cpu}};
    return OpenedStream{.handle = last_, .next = packets.empty() ? 0 : packets.back().seq + 1};
  }

  Status StorePacket(uint64_t handle, const weft_stream_packet& header, Bytes packet) override {
    const auto& [key, name] = handles_.at(handle);
    Trace* trace = Find(key);
    if (trace == nullptr) return Fail(ErrorCode::kClosed, "taken over");
    auto& packets = trace->streams[name];
    assert(packets.empty() || packets.back().seq < header.seq);
    packets.push_back({header.seq, header.events, {packet.begin(), packet.end()}});
    return {};
  }

  void Lost(uint64_t, const PacketsLost& what) override { lost += what.last - what.first + 1; }
  void Keep(uint64_t handle, uint64_t next) override {
    const auto& [key, name] = handles_.at(handle);
    if (Trace* trace = Find(key)) trace->kept[name] = next;
  }
  void Promise(uint64_t key, uint64_t time) override {
    Trace* trace = Find(key);
    if (trace == nullptr) return;
    trace->promise = std::max(trace->promise, time);
    trace->session = 0;
  }
  void Follow(uint64_t key, uint64_t session) override {
    if (Trace* trace = Find(key)) trace->session = session;
  }
  void PromiseAll(uint64_t session, uint64_t time) override {
    for (auto& [uuid, trace] : traces)
      if (trace.session == session) trace.promise = std::max(trace.promise, time);
  }
  void CloseSession(uint64_t) override {}
  void Report(uint64_t key, const Losses& losses) override {
    if (Trace* trace = Find(key)) trace->losses = losses;
  }
  Result<TraceEnded> EndTrace(uint64_t key) override {
    Trace* trace = Find(key);
    if (trace == nullptr) return Fail(ErrorCode::kClosed, "taken over");
    trace->ended++;
    return TraceEnded{};
  }

  void CloseTrace(uint64_t key) override {
    if (Trace* trace = Find(key)) trace->key = 0;
  }

  Status Sync() override { return {}; }

  std::map<std::string, Trace> traces;  // by UUID
  uint64_t lost = 0;                    // packets

 private:
  Trace* Find(uint64_t key) {
    const auto uuid = keys_.find(key);
    if (uuid == keys_.end()) return nullptr;
    Trace& trace = traces.at(uuid->second);
    return trace.key == key ? &trace : nullptr;
  }

  uint64_t last_ = 0;
  std::map<uint64_t, std::string> keys_;
  std::map<uint64_t, std::pair<uint64_t, std::pair<std::string, uint32_t>>> handles_;
};

}  // namespace weft::stream::testing

#endif  // WEFT_LIB_STREAM_TESTING_MEMORY_ARCHIVE_H_
