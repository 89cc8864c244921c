// SPDX-License-Identifier: Apache-2.0
// See archive.h.
#include "relay/ingest/archive.h"

#include <algorithm>

#include "lib/base/uuid.h"
#include "lib/ctf/packet_writer.h"
#include "relay/ingest/limits.h"

namespace weft::ingest {
namespace {

// One part of a path. A leading dot would hide it, or lead out.
bool IsPart(std::string_view name) {
  return !name.empty() && name.size() <= 255 && name.front() != '.' &&
         std::ranges::all_of(name, [](char c) {
           return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                  c == '-' || c == '_' || c == '.';
         });
}

bool IsPath(std::string_view path) {
  while (!path.empty()) {
    const size_t slash = std::min(path.find('/'), path.size());
    if (!IsPart(path.substr(0, slash))) return false;
    if (slash == path.size()) return true;
    path.remove_prefix(slash + 1);
  }
  return false;
}

// The folder of a Trace.
Result<std::string> FolderOf(const stream::Hello& who) {
  for (const std::string* part : {&who.kubernetes_namespace, &who.trace}) {
    if (!IsPart(*part)) return Fail(ErrorCode::kInvalid, "not a name for a folder: " + *part);
  }
  std::string uid;
  if (!who.trace_uid.empty()) {
    WEFT_ASSIGN(const Uuid trace_uid, ParseUuid(who.trace_uid));
    uid = FormatUuid(trace_uid);
  }
  return store::TraceFolder(who.kubernetes_namespace, who.trace, uid);
}

// The folder of a CTF trace, in that of its Trace.
Result<std::string> FolderOf(const std::string& folder, const stream::OpenTrace& what,
                             const Uuid& uuid) {
  for (const std::string* part : {&what.pod, &what.container}) {
    if (!IsPart(*part)) return Fail(ErrorCode::kInvalid, "not a name for a folder: " + *part);
  }
  if (!IsPath(what.path)) return Fail(ErrorCode::kInvalid, "not a name for a folder: " + what.path);
  return folder + "/" + what.pod + "/" + what.container + "/" + FormatUuid(uuid) + "/" + what.path;
}

// Makes a label of a node's text, which may be anything: only words of weft's own kind get through.
std::string Word(const std::string& text) {
  const bool fine = !text.empty() && text.size() <= 32 && std::ranges::all_of(text, [](char c) {
    return (c >= 'a' && c <= 'z') || c == '_';
  });
  return fine ? text : "other";
}

metrics::LabelValues Labels(const TraceLabels& trace) {
  return {trace.kubernetes_namespace, trace.trace};
}

}  // namespace

Result<DiskArchive::Trace*> DiskArchive::Find(uint64_t key) {
  const auto found = traces_.find(key);
  if (found == traces_.end()) return Fail(ErrorCode::kClosed, "another session has this trace now");
  return &found->second;
}

Result<DiskArchive::Stream*> DiskArchive::FindStream(uint64_t handle) {
  const auto found = streams_.find(handle);
  if (found == streams_.end()) {
    return Fail(ErrorCode::kClosed, "another session has this stream now");
  }
  return &found->second;
}

Result<stream::Archive::OpenedTrace> DiskArchive::OpenTrace(const stream::Hello& who,
                                                            const stream::OpenTrace& what) {
  WEFT_ASSIGN(const Uuid uuid, ParseUuid(what.uuid));
  WEFT_ASSIGN(std::string folder, FolderOf(who));
  WEFT_ASSIGN(std::string path, FolderOf(folder, what, uuid));
  if (const auto old = by_path_.find(path); old != by_path_.end()) CloseTrace(old->second);
  WEFT_ASSIGN(store::TraceStore store,
              store::TraceStore::Open(*folder_, path, what.metadata, pace_));
  const uint64_t key = ++last_key_;
  const uint64_t metadata = store.metadata_bytes();
  Retention::Trace& kept = retention_->OpenTrace(folder, limits_of_(who));
  retention_->SetMetadata(kept, path, metadata);
  by_path_[path] = key;
  safe_->Open(path);
  traces_.emplace(key, Trace{.path = std::move(path),
                             .folder = std::move(folder),
                             .pod = what.pod,
                             .labels = {who.kubernetes_namespace, who.trace},
                             .uuid = uuid,
                             .open = {},
                             .is_resumed = metadata > 0,
                             .has_ended = false,
                             .store = std::move(store),
                             .who = who,
                             .kept = &kept});
  return OpenedTrace{.key = key, .metadata = metadata};
}

Status DiskArchive::WriteMetadata(uint64_t key, uint64_t offset, std::string_view text) {
  WEFT_ASSIGN(Trace * trace, Find(key));
  if (offset == trace->store.metadata_bytes()) {
    WEFT_TRY(retention_->MakeRoom(*trace->kept, text.size()));
    WEFT_TRY(trace->store.AppendMetadata(text));
    retention_->SetMetadata(*trace->kept, trace->path, trace->store.metadata_bytes());
    return {};
  }
  return trace->store.OverwriteMetadata(offset, text);
}

Result<stream::Archive::OpenedStream> DiskArchive::OpenStream(uint64_t key,
                                                              const stream::OpenStream& what) {
  WEFT_ASSIGN(Trace * trace, Find(key));
  if (!IsPart(what.channel)) {
    return Fail(ErrorCode::kInvalid, "not a name for a file: " + what.channel);
  }
  if (trace->open.contains({what.channel, what.cpu})) {
    return Fail(ErrorCode::kInvalid, "a stream is opened twice: " + what.channel);
  }
  if (streams_.size() >= kMaxOpenStreams) return Fail(ErrorCode::kLimit, "too many streams");
  WEFT_ASSIGN(const store::TraceStore::AddedChunks added,
              trace->store.AddChunks(*folder_, what.channel, what.cpu, what.next, what.events));
  trace->open.emplace(what.channel, what.cpu);
  const uint64_t handle = ++last_key_;
  Stream& stream = streams_[handle];
  stream = {.trace = key,
            .number = added.stream,
            .unkept = {},
            .files = {},
            .kept = &retention_->OpenStream(*trace->kept, trace->path, added.chunks)};
  for (const auto& chunk : added.chunks) {
    // What is left of older chunks, the node knows to be stored.
    if (!stream.files.empty()) safe_->Keep(trace->path, stream.files.front(), UINT64_MAX);
    stream.files = {store::FormatChunkName(chunk.name)};
  }
  const store::StreamState& state = trace->store.state(stream.number);
  if (state.has_packets) {
    stream.unkept.push_back({state.last_sequence, stream.files.back(), state.bytes});
  }
  if (!counted_.contains(PathOf(*trace, stream)))
    metrics_->Add(metrics::Id::kRelayStreams, Labels(trace->labels));
  (void)Count(*trace, stream);  // stored before: no part of a rate
  return OpenedStream{.handle = handle, .next = trace->store.next_sequence(added.stream)};
}

Status DiskArchive::StorePacket(uint64_t handle, const weft_stream_packet& header, Bytes packet) {
  WEFT_ASSIGN(Stream * stream, FindStream(handle));
  WEFT_ASSIGN(Trace * trace, Find(stream->trace));
  WEFT_ASSIGN(const ctf::PacketInfo info, ctf::ReadPacketInfo(packet));
  if (info.sequence != header.seq || info.trace_uuid != trace->uuid) {
    return Fail(ErrorCode::kCorrupt, "a packet of another trace, or with another number");
  }
  // First, so that what was the stream's newest chunk may go for this packet.
  if (trace->store.MayEndChunk(stream->number) &&
      retention_->WantsChunk(*stream->kept, packet.size())) {
    WEFT_TRY(BeginChunk(*trace, *stream));
  }
  WEFT_TRY(
      retention_->MakeRoom(*trace->kept, trace->store.PacketBytes(stream->number, packet.size())));
  // If direct writes take more than half of the time, other nodes wait too long.
  pace_->FallBehind();
  const uint64_t before = trace->store.state(stream->number).bytes;
  WEFT_TRY(trace->store.WritePadded(stream->number, packet, header.events));
  retention_->Wrote(*stream->kept, trace->store.state(stream->number).bytes - before);
  if (stream->unkept.size() >= kMaxUnkeptPackets) stream->unkept.pop_front();
  stream->unkept.push_back(
      {header.seq, stream->files.back(), trace->store.state(stream->number).bytes});
  trace->has_ended = false;
  metrics_->Add(metrics::Id::kRelayPackets, Labels(trace->labels));
  metrics_->Add(metrics::Id::kRelayBytes, Labels(trace->labels),
                static_cast<double>(packet.size()));
  const uint64_t events = Count(*trace, *stream);
  rates_->Add(trace->folder, trace->pod, {.events = events, .bytes = packet.size()});
  return {};
}

Status DiskArchive::BeginChunk(Trace& trace, Stream& stream) {
  WEFT_ASSIGN(const store::ChunkName name, trace.store.BeginChunk(stream.number));
  retention_->BeginChunk(*stream.kept, name);
  stream.files.push_back(store::FormatChunkName(name));
  return {};
}

store::ChunkName DiskArchive::EndOf(const Trace& trace, const Stream& stream) {
  return {.stream = trace.store.name(stream.number),
          .sequence = trace.store.next_sequence(stream.number),
          .events = trace.store.events(stream.number)};
}

std::string DiskArchive::PathOf(const Trace& trace, const Stream& stream) {
  return trace.path + "/" + trace.store.name(stream.number);
}

uint64_t DiskArchive::Count(const Trace& trace, const Stream& stream) {
  const std::string path = PathOf(trace, stream);
  const auto found = counted_.find(path);
  if (found == counted_.end() && counted_.size() >= kMaxCountedStreams) return 0;
  uint64_t& counted = found == counted_.end() ? counted_[path] : found->second;
  const uint64_t events = trace.store.events(stream.number);
  if (events <= counted) return 0;
  const uint64_t more = events - counted;
  metrics_->Add(metrics::Id::kEventsDelivered, Labels(trace.labels), static_cast<double>(more));
  counted = events;
  return more;
}

void DiskArchive::Lost(uint64_t handle, const stream::PacketsLost& what) {
  const auto stream = FindStream(handle);
  if (!stream) return;
  const auto trace = Find((*stream)->trace);
  if (!trace) return;
  const TraceLabels& labels = (*trace)->labels;
  metrics_->Add(metrics::Id::kRelayPacketsLost,
                {labels.kubernetes_namespace, labels.trace, Word(what.stage), Word(what.reason)},
                static_cast<double>(what.last - what.first + 1));
}

void DiskArchive::Keep(uint64_t handle, uint64_t next) {
  const auto stream = FindStream(handle);
  if (!stream) return;
  const auto trace = Find((*stream)->trace);
  if (!trace) return;
  auto& unkept = (*stream)->unkept;
  std::optional<Stream::Packet> last;
  for (; !unkept.empty() && unkept.front().sequence < next; unkept.pop_front()) {
    last = std::move(unkept.front());
  }
  if (!last) return;
  // All of the chunks before it stays.
  auto& files = (*stream)->files;
  for (; files.front() != last->file; files.pop_front()) {
    safe_->Keep((*trace)->path, files.front(), UINT64_MAX);
  }
  safe_->Keep((*trace)->path, last->file, last->end);
}

void DiskArchive::Promise(uint64_t key, uint64_t time) {
  if (const auto trace = Find(key)) safe_->Promise((*trace)->path, time);
}

void DiskArchive::Follow(uint64_t key, uint64_t session) {
  if (const auto trace = Find(key)) safe_->Follow((*trace)->path, session);
}

void DiskArchive::PromiseAll(uint64_t session, uint64_t time) { safe_->PromiseAll(session, time); }

void DiskArchive::CloseSession(uint64_t session) { safe_->EndSession(session); }

void DiskArchive::Report(uint64_t key, const stream::Losses& losses) {
  const auto trace = Find(key);
  if (!trace) return;
  if (reported_.size() >= kMaxCountedStreams && !reported_.contains((*trace)->path)) return;
  const bool is_known = !(*trace)->is_resumed || reported_.contains((*trace)->path);
  stream::Losses& before = reported_[(*trace)->path];
  relay_rates::Counts rate;
  const TraceLabels& labels = (*trace)->labels;
  const auto add = [](uint64_t& counted, uint64_t now) {
    const uint64_t more = now > counted ? now - counted : 0;
    counted += more;
    return more;
  };
  for (const auto& [reason, count] : losses.discarded) {
    if (const uint64_t more = add(before.discarded[reason], count); more > 0) {
      rate.discarded += more;
      metrics_->Add(metrics::Id::kRelayReportedDiscarded,
                    {labels.kubernetes_namespace, labels.trace, Word(reason)},
                    static_cast<double>(more));
    }
  }
  for (const auto& [name, count] : losses.lost) {
    const size_t slash = std::min(name.find('/'), name.size());
    const std::string reason = slash < name.size() ? name.substr(slash + 1) : "";
    if (const uint64_t more = add(before.lost[name], count); more > 0) {
      rate.lost += more;
      metrics_->Add(
          metrics::Id::kRelayReportedLost,
          {labels.kubernetes_namespace, labels.trace, Word(name.substr(0, slash)), Word(reason)},
          static_cast<double>(more));
    }
  }
  if (is_known) rates_->Add((*trace)->folder, (*trace)->pod, rate);
}

Result<stream::TraceEnded> DiskArchive::EndTrace(uint64_t key) {
  WEFT_ASSIGN(Trace * trace, Find(key));
  WEFT_TRY(trace->store.Sync());
  trace->has_ended = true;
  stream::TraceEnded ended;
  for (auto& [handle, stream] : streams_) {
    if (stream.trace != key) continue;
    // Best effort: an ended stream has its end on the disk, so that it can be removed unread. No
    // packet follows, so the last one may be of one moment (TraceStore::MayEndChunk).
    if (trace->store.state(stream.number).has_packets) (void)BeginChunk(*trace, stream);
    ended.packets += trace->store.next_sequence(stream.number);
    for (const Retention::Chunk& chunk : stream.kept->chunks) ended.bytes += chunk.bytes;
  }
  return ended;
}

void DiskArchive::CloseTrace(uint64_t key) {
  const auto found = traces_.find(key);
  if (found == traces_.end()) return;
  std::erase_if(streams_, [&](const auto& entry) {
    if (entry.second.trace != key) return false;
    retention_->CloseStream(*entry.second.kept, EndOf(found->second, entry.second));
    return true;
  });
  safe_->Close(found->second.path, found->second.has_ended);
  by_path_.erase(found->second.path);
  traces_.erase(found);
}

// A stream to which nothing comes has a chunk that grows old, too.
void DiskArchive::Tick() {
  for (auto& [key, trace] : traces_) trace.kept->limits = limits_of_(trace.who);
  retention_->Tick();
  for (auto& [handle, stream] : streams_) {
    if (!retention_->WantsChunk(*stream.kept, 0)) continue;
    const auto trace = Find(stream.trace);
    if (!trace || !(*trace)->store.MayEndChunk(stream.number)) continue;
    (void)BeginChunk(**trace, stream);  // or at the next Tick
  }
}

Status DiskArchive::Sync() {
  Status first;
  for (auto& [key, trace] : traces_) {
    Status status = trace.store.Sync();
    if (first && !status) first = std::move(status);
  }
  return first;
}

}  // namespace weft::ingest
