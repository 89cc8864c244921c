// SPDX-License-Identifier: Apache-2.0
// See retention.h.
#include "relay/ingest/retention.h"

#include <algorithm>
#include <cstdio>

#include "lib/api/quantity.h"
#include "lib/base/uuid.h"
#include "relay/ingest/chunk_end.h"
#include "relay/ingest/limits.h"

namespace weft::ingest {
namespace {

constexpr const char* kMetadata = "metadata";

std::vector<std::string> Parts(const std::string& path) {
  std::vector<std::string> parts;
  for (size_t at = 0; at <= path.size();) {
    const size_t slash = std::min(path.find('/', at), path.size());
    parts.push_back(path.substr(at, slash - at));
    at = slash + 1;
  }
  return parts;
}

template <typename T>
T Least(T a, T b) {
  if (a == T{} || b == T{}) return std::max(a, b);
  return std::min(a, b);
}

std::string PathOf(const Retention::Stream& stream, const store::ChunkName& name) {
  return stream.folder + "/" + store::FormatChunkName(name);
}

}  // namespace

Retention::Retention(store::ChunkFolder& folder, metrics::Registry& metrics,
                     const StorageLimits& limits, Volume volume)
    : folder_(&folder),
      metrics_(&metrics),
      limits_(limits),
      volume_(std::move(volume)),
      now_(volume_.now()) {}

// --- the book ------------------------------------------------------------------------------------

Status Retention::Scan() {
  WEFT_ASSIGN(const auto entries, folder_->List(""));
  for (const auto& entry : entries) {
    if (entry.is_folder && entry.name.front() != '.') ScanFolder(entry.name, 1);
  }
  return {};
}

// A folder that is not the relay's, such as a file system's lost+found, cannot be read.
void Retention::ScanFolder(const std::string& path, size_t depth) {
  if (depth > kMaxScanDepth) return;
  const auto entries = folder_->List(path);
  if (!entries) return;
  const bool is_trace = std::ranges::any_of(
      *entries, [](const auto& entry) { return !entry.is_folder && entry.name == kMetadata; });
  if (is_trace && depth > 2) ScanTrace(path, *entries);
  for (const auto& entry : *entries) {
    if (entry.is_folder && entry.name.front() != '.') {
      ScanFolder(path + "/" + entry.name, depth + 1);
    }
  }
}

void Retention::ScanTrace(const std::string& path,
                          const std::vector<store::ChunkFolder::Entry>& entries) {
  const std::vector<std::string> parts = Parts(path);
  const bool has_uid = ParseUuid(parts[2]).has_value();
  Trace& trace = FindTrace(store::TraceFolder(parts[0], parts[1], has_uid ? parts[2] : ""));
  for (const auto& entry : entries) {
    if (entry.is_folder || entry.name.front() == '.') continue;
    if (entry.name == kMetadata) {
      SetMetadata(trace, path, entry.bytes);
      continue;
    }
    store::ChunkName name = store::ParseChunkName(entry.name);
    // The clock may have been ahead when it was written.
    const Time written = std::min(entry.written, now_);
    Stream& stream = streams_[path + "/" + name.stream];
    stream.trace = &trace;
    stream.folder = path;
    stream.chunks.push_back(
        {.name = std::move(name), .bytes = entry.bytes, .begun = written, .written = written});
    Grow(trace, entry.bytes);
  }
  for (auto at = streams_.lower_bound(path + "/");
       at != streams_.end() && at->first.starts_with(path + "/"); ++at) {
    Stream& stream = at->second;
    if (stream.folder != path) continue;
    std::ranges::sort(stream.chunks, {}, [](const Chunk& chunk) { return chunk.name.sequence; });
    if (stream.chunks.back().bytes == 0) stream.end = stream.chunks.back().name;
    Index(stream);
  }
}

Retention::Trace& Retention::FindTrace(const std::string& folder) {
  const auto [at, is_new] = traces_.try_emplace(folder);
  Trace& trace = at->second;
  if (!is_new) return trace;
  const std::vector<std::string> parts = Parts(folder);
  trace.name = parts[1];
  trace.owner = &namespaces_[parts[0]];
  trace.owner->name = parts[0];
  trace.owner->traces.push_back(&trace);
  return trace;
}

Retention::Trace& Retention::OpenTrace(const std::string& folder, const TraceLimits& limits) {
  Trace& trace = FindTrace(folder);
  trace.limits = limits;
  return trace;
}

void Retention::SetMetadata(Trace& trace, const std::string& folder, uint64_t bytes) {
  uint64_t& known = metadata_[folder];
  Shrink(trace, known);
  Grow(trace, bytes);
  known = bytes;
}

Retention::Stream& Retention::OpenStream(Trace& trace, const std::string& folder,
                                         const std::vector<store::TraceStore::Chunk>& chunks) {
  Stream& stream = streams_[folder + "/" + chunks.front().name.stream];
  const std::deque<Chunk> before = std::move(stream.chunks);
  for (const Chunk& chunk : before) Shrink(trace, chunk.bytes);
  stream.trace = &trace;
  stream.folder = folder;
  stream.chunks.clear();
  for (const auto& chunk : chunks) {
    const auto known = std::ranges::find(before, chunk.name, &Chunk::name);
    const bool is_known = known != before.end();
    stream.chunks.push_back({.name = chunk.name,
                             .bytes = chunk.bytes,
                             .begun = is_known ? known->begun : now_,
                             .written = is_known ? known->written : now_});
    Grow(trace, chunk.bytes);
  }
  if (!stream.is_open) {
    trace.open_streams++;
    trace.owner->open_streams++;
  }
  stream.is_open = true;
  stream.end.reset();
  Index(stream);
  return stream;
}

void Retention::CloseStream(Stream& stream, const store::ChunkName& end) {
  stream.is_open = false;
  stream.end = end;
  stream.trace->open_streams--;
  stream.trace->owner->open_streams--;
  Index(stream);
}

void Retention::Grow(Trace& trace, uint64_t bytes) {
  trace.bytes += bytes;
  trace.owner->bytes += bytes;
}

void Retention::Shrink(Trace& trace, uint64_t bytes) {
  trace.bytes -= bytes;
  trace.owner->bytes -= bytes;
}

void Retention::Index(Stream& stream) {
  const uint64_t removed_events = stream.chunks.front().name.events;
  stream.trace->removed_events += removed_events - stream.removed_events;
  stream.removed_events = removed_events;
  auto& removable = stream.trace->removable;
  if (stream.indexed) removable.erase({*stream.indexed, &stream});
  stream.indexed.reset();
  const bool may_go =
      stream.chunks.size() > 1 || (!stream.is_open && stream.chunks.front().bytes > 0);
  if (!may_go) return;
  stream.indexed = stream.chunks.front().written;
  removable.emplace(*stream.indexed, &stream);
}

// --- chunks --------------------------------------------------------------------------------------

uint64_t Retention::MostBytes(const Trace& trace) const {
  return Least(limits_.trace_bytes, trace.limits.bytes);
}

std::chrono::seconds Retention::MostAge(const Trace& trace) const {
  return Least(limits_.age, trace.limits.age);
}

// The newest chunks of all streams together are at most a quarter of a share, so that older ones
// can go, unless there are very many streams.
bool Retention::WantsChunk(const Stream& stream, uint64_t packet) const {
  const Chunk& newest = stream.chunks.back();
  if (newest.bytes == 0) return false;
  uint64_t most = limits_.chunk_bytes;
  const auto quarter = [&most](uint64_t share, size_t streams) {
    if (share > 0) most = std::min(most, std::max(kMinChunkBytes, share / 4 / streams));
  };
  quarter(MostBytes(*stream.trace), std::max<size_t>(stream.trace->open_streams, 1));
  quarter(limits_.namespace_bytes, std::max<size_t>(stream.trace->owner->open_streams, 1));
  if (packet > 0 && newest.bytes + packet > most) return true;
  std::chrono::seconds time = limits_.chunk_time;
  const std::chrono::seconds age = MostAge(*stream.trace);
  if (age > age.zero()) time = Least(time, std::max(kMinChunkTime, age / 4));
  if (time == time.zero()) return false;
  const bool may_end = packet > 0 || now_ - newest.written > kSettled;
  return may_end && now_ - newest.begun > time;
}

void Retention::BeginChunk(Stream& stream, const store::ChunkName& name) {
  stream.chunks.push_back({.name = name, .bytes = 0, .begun = now_, .written = now_});
  Index(stream);
}

void Retention::Wrote(Stream& stream, uint64_t bytes) {
  Chunk& newest = stream.chunks.back();
  if (newest.bytes == 0) newest.begun = now_;
  newest.bytes += bytes;
  newest.written = now_;
  Grow(*stream.trace, bytes);
}

// --- removing ------------------------------------------------------------------------------------

bool Retention::IsSettled(const Stream& stream) const {
  return stream.chunks.size() > 1 || now_ - stream.chunks.back().written > kSettled;
}

Retention::Stream* Retention::Oldest(const Trace& trace) const {
  for (const auto& [time, stream] : trace.removable) {
    if (IsSettled(*stream)) return stream;
  }
  return nullptr;
}

Retention::Stream* Retention::Oldest(const Namespace& name_space) const {
  Stream* oldest = nullptr;
  for (const Trace* trace : name_space.traces) {
    Stream* stream = Oldest(*trace);
    if (stream == nullptr) continue;
    const Time written = stream->chunks.front().written;
    if (oldest == nullptr || written < oldest->chunks.front().written) oldest = stream;
  }
  return oldest;
}

Retention::Stream* Retention::OldestOfLargest() const {
  uint64_t total = 0;
  size_t count = 0;
  std::vector<const Namespace*> by_size;
  for (const auto& [name, name_space] : namespaces_) {
    total += name_space.bytes;
    count += name_space.bytes > 0 ? 1 : 0;
    by_size.push_back(&name_space);
  }
  std::ranges::sort(by_size, std::greater{}, &Namespace::bytes);
  for (const Namespace* name_space : by_size) {
    if (count == 0 || name_space->bytes < total / count) return nullptr;
    if (Stream* stream = Oldest(*name_space); stream != nullptr) return stream;
  }
  return nullptr;
}

Status Retention::EndStream(Stream& stream) {
  if (!stream.end) {
    WEFT_ASSIGN(stream.end, FindChunkEnd(*folder_, stream.folder, stream.chunks.back().name));
  }
  if (*stream.end == stream.chunks.back().name) {
    return Fail(ErrorCode::kCorrupt, "it holds no packet");
  }
  WEFT_TRY(folder_->OpenFile(PathOf(stream, *stream.end)));
  stream.chunks.push_back({.name = *stream.end, .bytes = 0, .begun = now_, .written = now_});
  return {};
}

bool Retention::Remove(Stream* stream, const char* reason) {
  if (stream == nullptr) return false;
  Trace& trace = *stream->trace;
  const Chunk chunk = stream->chunks.front();
  Status removed = stream->chunks.size() > 1 ? Status() : EndStream(*stream);
  if (removed) removed = folder_->Remove(PathOf(*stream, chunk.name));
  if (!removed) {
    std::fprintf(stderr, "weft-relay: %s cannot be removed: %s\n",
                 PathOf(*stream, chunk.name).c_str(), removed.error().message.c_str());
    // Not to be tried again for each packet.
    if (stream->indexed) trace.removable.erase({*stream->indexed, stream});
    stream->indexed.reset();
    return false;
  }
  stream->chunks.pop_front();
  Shrink(trace, chunk.bytes);
  Index(*stream);
  const uint64_t next = stream->chunks.front().name.events;
  const uint64_t events = next > chunk.name.events ? next - chunk.name.events : 0;
  const metrics::LabelValues labels{trace.owner->name, trace.name, reason};
  metrics_->Add(metrics::Id::kRelayRemovedEvents, labels, static_cast<double>(events));
  metrics_->Add(metrics::Id::kRelayRemovedBytes, labels, static_cast<double>(chunk.bytes));
  return true;
}

Status Retention::MakeRoom(Trace& trace, uint64_t bytes) {
  const uint64_t of_trace = MostBytes(trace);
  // Nothing is removed for what cannot fit afterwards either.
  const uint64_t least = Least(of_trace, limits_.namespace_bytes);
  if (least > 0 && bytes > least) {
    return Fail(ErrorCode::kLimit, "a packet of " + std::to_string(bytes) +
                                       " bytes is larger than the whole quota of " +
                                       api::FormatQuantity(least) + ": raise the quota of the " +
                                       (least == of_trace ? "Trace" : "namespace"));
  }
  while (of_trace > 0 && trace.bytes + bytes > of_trace) {
    if (Remove(Oldest(trace), "trace_size")) continue;
    return Fail(ErrorCode::kLimit, "the Trace has used its " + api::FormatQuantity(of_trace) +
                                       " of the relay's storage, and has nothing that can be "
                                       "removed now");
  }
  const uint64_t of_namespace = limits_.namespace_bytes;
  while (of_namespace > 0 && trace.owner->bytes + bytes > of_namespace) {
    if (Remove(Oldest(*trace.owner), "namespace_size")) continue;
    return Fail(ErrorCode::kLimit, "the namespace has used its " +
                                       api::FormatQuantity(of_namespace) +
                                       " of the relay's storage, and has nothing that can be "
                                       "removed now");
  }
  return MakeFreeSpace(bytes);
}

// What was removed may become free only later: an API client may still read it. So only what was
// lacking is removed, and the volume is looked at again after a while.
Status Retention::MakeFreeSpace(uint64_t bytes) {
  if (limits_.free_bytes == 0) return {};
  unchecked_ += bytes;
  if (unchecked_ < kFreeCheckBytes) return {};
  const uint64_t wanted = limits_.free_bytes + unchecked_;
  uint64_t free = volume_.free_bytes();
  while (free < wanted) {
    Stream* stream = OldestOfLargest();
    const uint64_t size = stream == nullptr ? 0 : stream->chunks.front().bytes;
    if (!Remove(stream, "free_space")) {
      return Fail(ErrorCode::kLimit, "the relay's volume has less than " +
                                         api::FormatQuantity(limits_.free_bytes) +
                                         " free, and nothing that can be removed now");
    }
    free += size;
  }
  unchecked_ = 0;
  return {};
}

void Retention::RemoveOld(Trace& trace) {
  const std::chrono::seconds age = MostAge(trace);
  if (age == age.zero()) return;
  for (;;) {
    Stream* stream = Oldest(trace);
    if (stream == nullptr || now_ - stream->chunks.front().written <= age) return;
    if (!Remove(stream, "age")) return;
  }
}

void Retention::Tell(const std::string& folder, Trace& trace) {
  if (trace.removed_events == trace.told_removed) return;
  const std::vector<std::string> parts = Parts(folder);
  if (parts.size() < 3) return;  // local mode has no statuses
  trace.told_removed = trace.removed_events;
  const std::lock_guard lock(mutex_);
  removed_[folder] = {.folder = folder,
                      .name_space = parts[0],
                      .trace = parts[1],
                      .uid = parts[2],
                      .events = trace.removed_events,
                      .kept_bytes = trace.bytes};
}

std::vector<Retention::Removed> Retention::TakeRemoved() {
  const std::lock_guard lock(mutex_);
  std::vector<Removed> taken;
  for (auto& [folder, removed] : std::exchange(removed_, {})) taken.push_back(std::move(removed));
  return taken;
}

void Retention::Tick() {
  now_ = volume_.now();
  for (auto& [folder, trace] : traces_) {
    RemoveOld(trace);
    Tell(folder, trace);
  }
  for (auto& [folder, trace] : traces_) {
    if (trace.bytes == trace.shown_bytes) continue;
    metrics_->Add(metrics::Id::kRelayStoredBytes, {trace.owner->name, trace.name},
                  static_cast<double>(trace.bytes) - static_cast<double>(trace.shown_bytes));
    trace.shown_bytes = trace.bytes;
  }
}

}  // namespace weft::ingest
