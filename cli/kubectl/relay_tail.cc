// SPDX-License-Identifier: Apache-2.0
// See relay_tail.h.
#include "cli/kubectl/relay_tail.h"

#include <algorithm>
#include <utility>

#include "lib/ctf/packet_writer.h"
#include "lib/ctf/trace_class.h"
#include "lib/store/chunk_name.h"

namespace weft::kubectl {
namespace {

// Fetched of one stream at a time, so that other streams come up, too. Larger than any packet of a
// relay.
constexpr std::uint64_t kMostOfStream = kMaxPartsBytes;
// How often a round comes back to a stream that has more, such as another chunk.
constexpr int kPasses = 8;
// Bytes in a target for each part, beside its path: two numbers and their names.
constexpr std::size_t kPartText = 50;
// Between two rounds, if the last one took few requests.
constexpr std::chrono::milliseconds kRound{25};
// A relay takes 100 requests a second of one client (relay/api/limits.h), and there may be others
// with this view.
constexpr std::chrono::milliseconds kPerRequest{12};

// "a/b/user_0" is the stream "user_0" of the CTF trace in "a/b".
std::pair<std::string, std::string> Split(const std::string& path) {
  const std::size_t slash = path.rfind('/');
  if (slash == std::string::npos) return {"", path};
  return {path.substr(0, slash), path.substr(slash + 1)};
}

}  // namespace

std::vector<RelayTail::Stream> RelayTail::StreamsOf(const std::vector<RelayFile>& files) {
  std::map<std::pair<std::string, std::string>, std::map<std::uint64_t, const RelayFile*>> found;
  for (const RelayFile& file : files) {
    const auto [folder, name] = Split(file.path);
    if (name == "metadata") continue;
    const store::ChunkName chunk = store::ParseChunkName(name);
    found[{folder, chunk.stream}][chunk.sequence] = &file;
  }
  std::vector<Stream> streams;
  for (const auto& [key, chunks] : found) {
    Stream& stream = streams.emplace_back(Stream{key.first, key.second, {}});
    for (const auto& [sequence, file] : chunks) stream.chunks.push_back(file);
  }
  return streams;
}

Result<std::string_view> RelayTail::NewPackets(std::string_view bytes, std::size_t& whole,
                                               std::optional<std::uint64_t>& last_sequence) {
  std::size_t at = 0;
  std::size_t old = 0;  // bytes of packets that were handed on already
  while (bytes.size() - at >= ctf::kPacketHeaderBytes) {
    const auto* front = reinterpret_cast<const std::uint8_t*>(bytes.data() + at);
    WEFT_ASSIGN(const ctf::PacketInfo packet,
                ctf::ReadPacketInfo({front, ctf::kPacketHeaderBytes}));
    if (packet.packet_bytes > bytes.size() - at) break;
    at += packet.packet_bytes;
    if (last_sequence && packet.sequence <= *last_sequence) {
      old = at;
    } else {
      last_sequence = packet.sequence;
    }
  }
  if (at == 0 && !bytes.empty())
    return Fail(ErrorCode::kCorrupt, "a packet is larger than a relay accepts");
  whole = at;
  return bytes.substr(old, at - old);
}

Result<std::string> RelayTail::Read(const RelayFile& file, std::uint64_t at, std::uint64_t size) {
  ++requests_;
  return relay_.Read(file.path, at, size);
}

Status RelayTail::FetchMetadata(const RelayFile& file) {
  std::uint64_t& known = fetched_[file.path];
  if (known == file.size) return {};
  if (file.size > ctf::kMaxMetadataBytes)
    return Fail(ErrorCode::kLimit, file.path + " is larger than metadata can be");
  WEFT_ASSIGN(const std::string text, Read(file, 0, file.size));
  sink_.SetMetadata(Split(file.path).first, text);
  known = file.size;
  return {};
}

// A chunk comes behind all of the one before.
std::optional<RelayTail::Want> RelayTail::NextWant(const Stream& stream, bool is_over) {
  for (const RelayFile* file : stream.chunks) {
    const bool is_live = file->live && !is_over;
    const std::uint64_t end = is_live ? std::min(file->kept, file->size) : file->size;
    std::uint64_t& known = fetched_[file->path];
    // A node that was away for long came back and had packets cut off: they come again.
    if (file->size < known) known = 0;
    if (known < end) {
      return Want{.stream = &stream,
                  .part = {file->path, known, std::min(end - known, kMostOfStream)},
                  .file_size = file->size};
    }
    if (known < file->size) return std::nullopt;
  }
  return std::nullopt;
}

std::vector<RelayTail::Want> RelayTail::WantsOf(const std::vector<Stream>& streams, bool is_over) {
  std::vector<Want> wants;
  for (const Stream& stream : streams)
    if (auto want = NextWant(stream, is_over)) wants.push_back(std::move(*want));
  return wants;
}

bool RelayTail::LeaveOut(std::vector<Want>& wants) {
  if (!sink_.IsFull()) return false;
  return std::erase_if(wants, [this](const Want& want) {
           return !sink_.WaitsFor(want.stream->folder, want.stream->name);
         }) > 0;
}

Status RelayTail::FetchWants(std::span<const Want> wants) {
  while (!wants.empty()) {
    std::vector<RelayPart> parts;
    std::uint64_t bytes = 0;
    std::size_t target = 0;
    for (const Want& want : wants) {
      bytes += want.part.size;
      target += want.part.path.size() + kPartText;
      const bool fits =
          parts.size() < kMaxParts && bytes <= kMaxPartsBytes && target <= kMaxPartsTarget;
      if (!parts.empty() && !fits) break;
      parts.push_back(want.part);
    }
    ++requests_;
    WEFT_ASSIGN(const auto read, relay_.ReadParts(parts));
    for (std::size_t i = 0; i < read.size(); i++) WEFT_TRY(HandOn(wants[i], read[i]));
    wants = wants.subspan(parts.size());
  }
  return {};
}

// std::nullopt: the relay has removed the file since.
Status RelayTail::HandOn(const Want& want, const std::optional<std::string>& bytes) {
  std::uint64_t& known = fetched_[want.part.path];
  if (!bytes) {
    known = want.file_size;
    return {};
  }
  std::size_t whole = 0;
  const Stream& stream = *want.stream;
  auto& last_sequence = last_sequences_[stream.folder + "/" + stream.name];
  WEFT_ASSIGN(const std::string_view packets, NewPackets(*bytes, whole, last_sequence));
  known += whole;
  if (!packets.empty()) WEFT_TRY(sink_.AddPackets(stream.folder, stream.name, packets));
  return {};
}

void RelayTail::TellState(const Stream& stream, bool is_over) {
  bool has_kept = true;
  bool has_all = true;
  for (const RelayFile* file : stream.chunks) {
    has_kept = has_kept && fetched_[file->path] >= file->kept;
    has_all = has_all && fetched_[file->path] >= file->size;
  }
  const RelayFile& newest = *stream.chunks.back();
  if (newest.live && !is_over) {
    if (has_kept) sink_.SetSafe(stream.folder, stream.name, newest.safe_time);
  } else if (has_all) {
    sink_.SetEnded(stream.folder, stream.name);
  }
}

Result<bool> RelayTail::Fetch(bool is_over) {
  requests_ = 1;
  auto files = relay_.Files();
  if (!files && files.error().code == ErrorCode::kNotFound) return false;
  if (!files) return std::unexpected(std::move(files.error()));
  for (const RelayFile& file : *files)
    if (Split(file.path).second == "metadata") WEFT_TRY(FetchMetadata(file));
  const std::vector<Stream> streams = StreamsOf(*files);
  std::vector<Want> wants = WantsOf(streams, is_over);
  bool left_out = LeaveOut(wants);
  for (int pass = 0; pass < kPasses && !wants.empty(); ++pass) {
    WEFT_TRY(FetchWants(wants));
    wants = WantsOf(streams, is_over);
    left_out = LeaveOut(wants);
  }
  // Behind all packets: what this answer says of a stream holds beside what it says of the others.
  for (const Stream& stream : streams) TellState(stream, is_over);
  return left_out || !wants.empty();
}

std::chrono::milliseconds RelayTail::pause() const {
  return std::max(kRound, requests_ * kPerRequest);
}

}  // namespace weft::kubectl
