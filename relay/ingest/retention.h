// SPDX-License-Identifier: Apache-2.0
// Removes what the relay no longer keeps: the book of all chunks on its volume, by namespace and
// Trace, and the rules by which the oldest ones go (docs/adr/0054). The archive tells it what it
// writes. The ingest's thread owns it; TakeRemoved may be called from any.
//
// Invariants
//   1. A chunk is removed after all older ones of its stream. The newest chunk of a stream stays
//      while a session has the stream open, and for kSettled after its last packet: until then a
//      node may not know yet that its last packet is stored, and would send it again.
//   2. A Trace that exceeds its share loses its own chunks only, a namespace its own only. For free
//      space, the namespace with the most bytes loses: it has at least an equal part.
//   3. What is removed was counted once as delivered, and is counted once as removed.
#ifndef WEFT_RELAY_INGEST_RETENTION_H_
#define WEFT_RELAY_INGEST_RETENTION_H_

#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "lib/base/result.h"
#include "lib/metrics/registry.h"
#include "lib/store/store.h"
#include "relay/ingest/storage_limits.h"

namespace weft::ingest {

// What the retention asks its surroundings.
struct Volume {
  std::function<std::chrono::system_clock::time_point()> now = std::chrono::system_clock::now;
  std::function<uint64_t()> free_bytes = [] { return UINT64_MAX; };
};

class Retention {
 public:
  using Time = std::chrono::system_clock::time_point;
  struct Trace;
  struct Stream;
  struct Namespace {
    std::string name;
    uint64_t bytes = 0;
    size_t open_streams = 0;
    std::vector<Trace*> traces;
  };
  struct Trace {
    Namespace* owner = nullptr;
    std::string name;
    TraceLimits limits;
    uint64_t bytes = 0;
    uint64_t shown_bytes = 0;     // in the metrics
    uint64_t removed_events = 0;  // as the names of the streams' oldest chunks tell
    uint64_t told_removed = 0;    // by TakeRemoved
    size_t open_streams = 0;
    // Streams with a chunk that may go, by the time when their oldest one was written.
    std::set<std::pair<Time, Stream*>> removable;
  };
  struct Chunk {
    store::ChunkName name;
    uint64_t bytes = 0;
    Time begun;    // when its first packet came
    Time written;  // when its last packet came
  };
  struct Stream {
    Trace* trace = nullptr;
    std::string folder;        // of its CTF trace
    std::deque<Chunk> chunks;  // the oldest first
    bool is_open = false;
    uint64_t removed_events = 0;  // a part of the Trace's
    std::optional<Time> indexed;  // in `removable`
    // The name of a chunk that would follow its last packet. None: it is open, or an earlier relay
    // wrote it.
    std::optional<store::ChunkName> end;
  };

  // All references outlive it.
  Retention(store::ChunkFolder& folder, metrics::Registry& metrics, const StorageLimits& limits,
            Volume volume = {});

  // Reads what earlier relays stored.
  Status Scan();

  // The Trace in a folder, NAMESPACE/NAME/UID, which now has these limits. Valid from now on.
  Trace& OpenTrace(const std::string& folder, const TraceLimits& limits);
  // The metadata in the folder of a CTF trace has so many bytes now.
  void SetMetadata(Trace& trace, const std::string& folder, uint64_t bytes);
  // A stream is open, with what it has after the cut. Valid from now on.
  Stream& OpenStream(Trace& trace, const std::string& folder,
                     const std::vector<store::TraceStore::Chunk>& chunks);
  // `end`: see Stream.
  void CloseStream(Stream& stream, const store::ChunkName& end);

  // Is the stream's newest chunk to end before a packet of so many bytes, 0: for its age?
  [[nodiscard]] bool WantsChunk(const Stream& stream, uint64_t packet) const;
  void BeginChunk(Stream& stream, const store::ChunkName& name);
  // Removes what must go before so many bytes come. kLimit: they have no room.
  Status MakeRoom(Trace& trace, uint64_t bytes);
  void Wrote(Stream& stream, uint64_t bytes);

  // Removes what is too old. Call it about once in a second.
  void Tick();

  // What a Trace has lost, whichever relay removed it.
  struct Removed {
    std::string folder;  // NAMESPACE/TRACE/UID
    std::string name_space;
    std::string trace;
    std::string uid;
    uint64_t events = 0;
    uint64_t kept_bytes = 0;
  };
  // The Traces in a cluster of which something was removed since the last call, as of the last
  // Tick.
  std::vector<Removed> TakeRemoved();

 private:
  void ScanFolder(const std::string& path, size_t depth);
  void ScanTrace(const std::string& path, const std::vector<store::ChunkFolder::Entry>& entries);
  Trace& FindTrace(const std::string& folder);
  [[nodiscard]] uint64_t MostBytes(const Trace& trace) const;            // 0: no limit
  [[nodiscard]] std::chrono::seconds MostAge(const Trace& trace) const;  // 0: no limit
  void Grow(Trace& trace, uint64_t bytes);
  void Shrink(Trace& trace, uint64_t bytes);
  // Puts a stream where its oldest chunk belongs.
  void Index(Stream& stream);
  [[nodiscard]] bool IsSettled(const Stream& stream) const;
  // The stream whose oldest chunk is to go next; nullptr: there is none.
  Stream* Oldest(const Trace& trace) const;
  Stream* Oldest(const Namespace& name_space) const;
  // Removes a stream's oldest chunk. False: it could not.
  bool Remove(Stream* stream, const char* reason);
  // Makes an empty chunk behind the last one of a stream that is not open.
  Status EndStream(Stream& stream);
  void RemoveOld(Trace& trace);
  void Tell(const std::string& folder, Trace& trace);
  Status MakeFreeSpace(uint64_t bytes);
  // The stream that loses for free space; nullptr: no namespace with at least an equal part has
  // one.
  Stream* OldestOfLargest() const;

  store::ChunkFolder* folder_;
  metrics::Registry* metrics_;
  const StorageLimits limits_;
  const Volume volume_;
  Time now_;                // at the last Tick
  uint64_t unchecked_ = 0;  // bytes since the volume's free space was looked at
  std::map<std::string, Namespace> namespaces_;
  std::map<std::string, Trace> traces_;       // by folder
  std::map<std::string, uint64_t> metadata_;  // bytes, by path
  std::map<std::string, Stream> streams_;     // by path

  std::mutex mutex_;
  std::map<std::string, Removed> removed_;  // by folder; under mutex_
};

}  // namespace weft::ingest

#endif  // WEFT_RELAY_INGEST_RETENTION_H_
