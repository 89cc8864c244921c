// SPDX-License-Identifier: Apache-2.0
// Stores what nodes send as CTF on the disk, through lib/store, and counts it:
//
//   DATA_DIR/NAMESPACE/TRACE/UID/POD/CONTAINER/UUID/PATH/metadata, CHANNEL_CPU ...
//
// A stream is written into chunks (lib/store/chunk_name.h, docs/adr/0053).
// UID is the Trace's, so a Trace that is made again under its old name has a folder of its own;
// local mode has no uid, and no such folder. UUID is the CTF trace's: a container that is started
// again has another one. The node gives PATH, such as "ust/uid/1000/64-bit". Acknowledged packets
// were written by write(2): they survive the relay, and after EndTrace the machine. A trace belongs
// to the session that opened it last. The ingest's thread owns it.
#ifndef WEFT_RELAY_INGEST_ARCHIVE_H_
#define WEFT_RELAY_INGEST_ARCHIVE_H_

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <utility>

#include "lib/ctf/schema.h"
#include "lib/metrics/registry.h"
#include "lib/store/safe_reads.h"
#include "lib/store/store.h"
#include "lib/stream/receiver.h"
#include "relay/ingest/retention.h"
#include "relay/rates/trace_rates.h"

namespace weft::ingest {

// Names of a Trace, as the labels of its metrics have them.
struct TraceLabels {
  std::string kubernetes_namespace;
  std::string trace;
};

class DiskArchive : public stream::Archive {
 public:
  // What the Trace of a session asks for.
  using LimitsOf = std::function<TraceLimits(const stream::Hello&)>;

  // All references outlive the archive.
  DiskArchive(
      store::ChunkFolder& folder, store::SafeReads& safe, metrics::Registry& metrics,
      relay_rates::TraceRates& rates, Retention& retention,
      LimitsOf limits_of = [](const stream::Hello&) { return TraceLimits(); })
      : folder_(&folder),
        safe_(&safe),
        metrics_(&metrics),
        rates_(&rates),
        retention_(&retention),
        limits_of_(std::move(limits_of)) {}

  Result<OpenedTrace> OpenTrace(const stream::Hello& who, const stream::OpenTrace& what) override;
  Status WriteMetadata(uint64_t trace, uint64_t offset, std::string_view text) override;
  Result<OpenedStream> OpenStream(uint64_t trace, const stream::OpenStream& what) override;
  Status StorePacket(uint64_t handle, const weft_stream_packet& header, Bytes packet) override;
  void Lost(uint64_t handle, const stream::PacketsLost& what) override;
  void Keep(uint64_t handle, uint64_t next) override;
  void Promise(uint64_t trace, uint64_t time) override;
  void Follow(uint64_t trace, uint64_t session) override;
  void PromiseAll(uint64_t session, uint64_t time) override;
  void Report(uint64_t trace, const stream::Losses& losses) override;
  Result<stream::TraceEnded> EndTrace(uint64_t trace) override;
  void CloseTrace(uint64_t trace) override;
  void CloseSession(uint64_t session) override;

  Status Sync() override;
  void Tick() override;

 private:
  struct Trace {
    std::string path;
    std::string folder;  // of its Trace
    std::string pod;
    TraceLabels labels;
    Uuid uuid{};
    std::set<std::pair<std::string, uint32_t>> open;  // channel and CPU
    // It was here before this session: its first report may tell of what was counted in an earlier
    // life of the relay.
    bool is_resumed = false;
    bool has_ended = false;  // all of it came
    store::TraceStore store;
    stream::Hello who;
    Retention::Trace* kept = nullptr;
  };
  struct Stream {
    uint64_t trace = 0;
    size_t number = 0;  // of the store
    struct Packet {
      uint64_t sequence = 0;
      std::string file;
      uint64_t end = 0;  // in the file
    };
    std::deque<Packet> unkept;      // stored packets that the node may still have cut off
    std::deque<std::string> files;  // of chunks: those with packets of `unkept`, and the newest
    Retention::Stream* kept = nullptr;
  };

  Result<Trace*> Find(uint64_t key);
  Result<Stream*> FindStream(uint64_t handle);
  Status BeginChunk(Trace& trace, Stream& stream);
  // Where the stream ends now, as the name of a chunk that would begin there.
  static store::ChunkName EndOf(const Trace& trace, const Stream& stream);
  // Returns the stream's path, which its first chunk has.
  static std::string PathOf(const Trace& trace, const Stream& stream);
  // Counts the stream's events that were not counted yet, and returns how many these are. A stream
  // that was cut back has fewer events than before, for a moment; a counter never falls.
  uint64_t Count(const Trace& trace, const Stream& stream);

  store::ChunkFolder* folder_;
  store::SafeReads* safe_;
  metrics::Registry* metrics_;
  relay_rates::TraceRates* rates_;
  Retention* retention_;
  LimitsOf limits_of_;
  std::shared_ptr<store::DirectPace> pace_ = std::make_shared<store::DirectPace>();
  uint64_t last_key_ = 0;
  std::map<uint64_t, Trace> traces_;
  std::map<std::string, uint64_t> by_path_;
  std::map<uint64_t, Stream> streams_;
  std::unordered_map<std::string, uint64_t> counted_;         // events, by the stream's path
  std::unordered_map<std::string, stream::Losses> reported_;  // by the trace's path
};

}  // namespace weft::ingest

#endif  // WEFT_RELAY_INGEST_ARCHIVE_H_
