// SPDX-License-Identifier: Apache-2.0
// See viewer.h. Numbers of the protocol are big-endian; docs/formats/live.md has the layouts.
#include "lib/live/viewer.h"

#include <algorithm>
#include <bit>

#include "lib/ctf/packet_writer.h"
#include "lib/live/edit_packet.h"
#include "lib/live/limits.h"

namespace weft::live {
namespace {

constexpr uint32_t kMajor = 2;
// Later ones are of viewers that may be sent CTF 2.
constexpr uint32_t kMinor = 14;
constexpr size_t kCommandBytes = 16;

enum Command : uint32_t {
  kConnect = 1,
  kList = 2,
  kAttach = 3,
  kNextIndex = 4,
  kGetPacket = 5,
  kGetMetadata = 6,
  kNewStreams = 7,
  kCreateSession = 8,
  kDetach = 9,
};

enum IndexStatus : uint32_t { kIndexOk = 1, kIndexRetry = 2, kIndexHup = 3, kIndexInactive = 5 };
enum NewStreamsStatus : uint32_t { kNewOk = 1, kNewNone = 2, kNewHup = 4 };
enum AttachStatus : uint32_t {
  kAttachOk = 1,
  kAttachAlready = 2,
  kAttachUnknown = 3,
  kAttachNoSession = 6,
};
constexpr uint32_t kOk = 1;
constexpr uint32_t kNoNewMetadata = 2;
constexpr uint32_t kPacketError = 3;
constexpr uint32_t kDetachUnknown = 2;

constexpr uint32_t kFlagNewMetadata = 1;
constexpr uint32_t kFlagNewStream = 2;

constexpr size_t kHostBytes = 64;
constexpr size_t kNameBytes = 255;
constexpr size_t kPathBytes = 4096;

// The one session, and streams: even numbers are metadata, odd ones data.
constexpr uint64_t kSession = 1;
uint64_t MetadataId(size_t trace) { return uint64_t{trace} * 2 + 2; }
uint64_t StreamId(size_t stream) { return uint64_t{stream} * 2 + 3; }

template <typename T>
void Put(std::string& out, T value) {
  if constexpr (std::endian::native == std::endian::little) value = std::byteswap(value);
  out.append(reinterpret_cast<const char*>(&value), sizeof(value));
}

template <typename T>
T Get(ByteReader& reader) {
  const T value = reader.Read<T>();
  return std::endian::native == std::endian::little ? std::byteswap(value) : value;
}

// A time of this stream only, up to 4 us before `safe_ns`: babeltrace2 warns of beacons that two
// streams have at the same time.
uint64_t BeaconTime(uint64_t safe_ns, size_t stream) {
  constexpr uint64_t kStep = 4096;
  const uint64_t own = stream % kStep;
  return safe_ns < kStep ? 0 : (safe_ns - own) / kStep * kStep + own;
}

// A text in a field of fixed size, which ends with at least one NUL.
void PutText(std::string& out, std::string_view text, size_t size) {
  text = text.substr(0, size - 1);
  out.append(text);
  out.append(size - text.size(), '\0');
}

// Metadata as CTF packets, which viewers expect. Little-endian, as the trace is.
void PutMetadataPacket(std::string& out, const Uuid& uuid, std::string_view text) {
  constexpr uint32_t kMetadataMagic = 0x75d11d57;
  constexpr size_t kHeader = 37;
  const auto put = [&out](auto value) {
    out.append(reinterpret_cast<const char*>(&value), sizeof(value));
  };
  put(kMetadataMagic);
  out.append(reinterpret_cast<const char*>(uuid.data()), uuid.size());
  put(uint32_t{0});  // no checksum
  const auto bits = static_cast<uint32_t>((kHeader + text.size()) * 8);
  put(bits);
  put(bits);
  out.append({0, 0, 0});  // no compression, encryption, checksum scheme
  out.append({1, 8});     // CTF 1.8
  out.append(text);
}

}  // namespace

Status Viewer::Receive(Bytes bytes) {
  in_.insert(in_.end(), bytes.begin(), bytes.end());
  size_t at = 0;
  while (in_.size() - at >= kCommandBytes && out_.size() < kMaxOutBytes) {
    ByteReader header(Bytes(in_).subspan(at, kCommandBytes));
    const auto size = Get<uint64_t>(header);
    const auto command = Get<uint32_t>(header);
    if (size > kMaxPayloadBytes) {
      return Fail(ErrorCode::kCorrupt, "viewer: a command of " + std::to_string(size) + " bytes");
    }
    if (in_.size() - at < kCommandBytes + size) break;
    WEFT_TRY(Handle(command, ByteReader(Bytes(in_).subspan(at + kCommandBytes, size))));
    at += kCommandBytes + size;
  }
  in_.erase(in_.begin(), in_.begin() + static_cast<std::ptrdiff_t>(at));
  return {};
}

Status Viewer::Handle(uint32_t command, ByteReader payload) {
  if (!is_connected_ && command != kConnect) {
    return Fail(ErrorCode::kCorrupt, "viewer: a command before CONNECT");
  }
  switch (command) {
    case kConnect:
      return Connect(payload);
    case kList:
      return List();
    case kAttach:
      return Attach(payload);
    case kNextIndex:
      return NextIndex(payload);
    case kGetPacket:
      return GetPacket(payload);
    case kGetMetadata:
      return GetMetadata(payload);
    case kNewStreams:
      return NewStreams(payload);
    case kCreateSession:
      return CreateSession();
    case kDetach:
      return Detach(payload);
    default:
      return Fail(ErrorCode::kUnsupported,
                  "viewer: the unknown command " + std::to_string(command));
  }
}

Status Viewer::Connect(ByteReader payload) {
  (void)Get<uint64_t>(payload);
  const auto major = Get<uint32_t>(payload);
  const auto minor = Get<uint32_t>(payload);
  const auto type = Get<uint32_t>(payload);
  if (!payload.ok()) return Fail(ErrorCode::kCorrupt, "viewer: CONNECT is too short");
  is_connected_ = major == kMajor;
  Put(out_, number_);
  Put(out_, kMajor);
  Put(out_, std::min(minor, kMinor));
  Put(out_, type);
  return {};
}

Status Viewer::CreateSession() {
  has_session_ = true;
  Put(out_, kOk);
  return {};
}

Status Viewer::List() {
  // babeltrace2 looks for the session again when it has ended, and would show all of it again.
  Put(out_, is_done_ ? uint32_t{0} : uint32_t{1});
  if (is_done_) return {};
  Put(out_, kSession);
  Put(out_, uint32_t{100'000});  // the live timer, in microseconds
  Put(out_, is_attached_ ? uint32_t{1} : uint32_t{0});
  Put(out_, static_cast<uint32_t>(trace_.streams.size()));
  PutText(out_, trace_.host, kHostBytes);
  PutText(out_, trace_.session, kNameBytes);
  return {};
}

Status Viewer::Attach(ByteReader payload) {
  const auto session = Get<uint64_t>(payload);
  (void)Get<uint64_t>(payload);
  // babeltrace2 always asks for what comes from now on. People want to see all.
  (void)Get<uint32_t>(payload);
  if (!payload.ok()) return Fail(ErrorCode::kCorrupt, "viewer: ATTACH is too short");
  uint32_t status = kAttachOk;
  if (session != kSession) status = kAttachUnknown;
  if (!has_session_) status = kAttachNoSession;
  if (is_attached_ || is_done_) status = kAttachAlready;
  Put(out_, status);
  if (status != kAttachOk) {
    Put(out_, uint32_t{0});
    return {};
  }
  is_attached_ = true;
  Announce();
  return {};
}

Status Viewer::NewStreams(ByteReader payload) {
  (void)Get<uint64_t>(payload);
  if (!payload.ok()) return Fail(ErrorCode::kCorrupt, "viewer: GET_NEW_STREAMS is too short");
  if (positions_.size() < trace_.streams.size()) {
    Put(out_, uint32_t{kNewOk});
    Announce();
    return {};
  }
  is_done_ = is_done_ || IsDone();
  Put(out_, uint32_t{is_done_ ? kNewHup : kNewNone});
  Put(out_, uint32_t{0});
  return {};
}

bool Viewer::IsDone() const {
  return trace_.is_over && std::ranges::none_of(positions_, &Position::is_open);
}

// The viewer has shown nothing newer than this.
uint64_t Viewer::Floor() const {
  uint64_t least = UINT64_MAX;
  uint64_t most = floor_ns_;
  for (const Position& position : positions_) {
    if (position.is_open) least = std::min(least, position.told_ns);
    most = std::max(most, position.told_ns);
  }
  return std::max(floor_ns_, std::min(least, most));
}

void Viewer::Announce() {
  const size_t first = positions_.size();
  floor_ns_ = Floor();
  positions_.resize(trace_.streams.size());
  for (size_t i = first; i < positions_.size(); i++) positions_[i].told_ns = floor_ns_;
  const size_t first_trace = metadata_.size();
  metadata_.resize(trace_.traces.size());
  Put(out_, static_cast<uint32_t>(positions_.size() - first + metadata_.size() - first_trace));
  const auto put = [this](uint64_t id, size_t trace, bool is_metadata, std::string_view name) {
    Put(out_, id);
    Put(out_, uint64_t{trace});
    Put(out_, uint32_t{is_metadata});
    PutText(out_, trace_.traces[trace].path, kPathBytes);
    PutText(out_, name, kNameBytes);
  };
  for (size_t i = first_trace; i < metadata_.size(); i++) put(MetadataId(i), i, true, "metadata");
  for (size_t i = first; i < positions_.size(); i++) {
    put(StreamId(i), trace_.streams[i].trace, false, trace_.streams[i].channel);
  }
}

uint32_t Viewer::Flags(size_t stream) const {
  const size_t trace = trace_.streams[stream].trace;
  return (metadata_[trace] < trace_.traces[trace].metadata.size() ? kFlagNewMetadata : 0) |
         (positions_.size() < trace_.streams.size() ? kFlagNewStream : 0);
}

void Viewer::PutIndex(uint32_t status, uint32_t flags, size_t stream, const Packet& packet,
                      uint64_t offset) {
  Put(out_, offset);
  Put(out_, packet.bytes * 8);
  Put(out_, packet.content_bytes * 8);
  Put(out_, packet.begin_ns);
  Put(out_, packet.end_ns);
  Put(out_, packet.discarded);
  Put(out_, trace_.streams[stream].class_id);
  Put(out_, status);
  Put(out_, flags);
}

Status Viewer::NextIndex(ByteReader payload) {
  const auto id = Get<uint64_t>(payload);
  const uint64_t number = (id - 3) / 2;
  if (!payload.ok() || id < 3 || id % 2 == 0 || number >= positions_.size()) {
    return Fail(ErrorCode::kCorrupt, "viewer: GET_NEXT_INDEX of an unknown stream");
  }
  const Stream& stream = trace_.streams[number];
  Position& position = positions_[number];
  position.edited.clear();
  position.packet = {};
  const uint32_t flags = Flags(number);
  if (position.next < stream.packets.size()) {
    PutNextPacket(number, flags);
  } else if (stream.has_ended) {
    position.is_open = false;
    PutIndex(kIndexHup, flags, number, {}, 0);
  } else if ((flags & kFlagNewStream) != 0 && called_ < trace_.streams.size()) {
    // babeltrace2 2.0 looks for new streams only if a packet has the flag.
    called_ = trace_.streams.size();
    PutInserted(number, flags);
  } else if (const uint64_t beacon = BeaconTime(stream.safe_ns, number);
             beacon > position.told_ns) {
    position.told_ns = beacon;
    PutIndex(kIndexInactive, flags, number, {.end_ns = beacon}, 0);
  } else {
    PutIndex(kIndexRetry, flags, number, {}, 0);
  }
  return {};
}

void Viewer::PutNextPacket(size_t number, uint32_t flags) {
  const Stream& stream = trace_.streams[number];
  Position& position = positions_[number];
  position.packet = stream.packets[position.next++];
  position.discarded = position.packet.discarded;
  if (position.packet.begin_ns < position.told_ns || position.inserted > 0) Edit(stream, position);
  const Packet& packet = position.packet;
  position.told_ns = std::max(position.told_ns, packet.end_ns);
  position.begin = position.offset;
  position.offset += packet.bytes;
  PutIndex(kIndexOk, flags, number, packet, position.begin);
}

void Viewer::Edit(const Stream& stream, Position& position) {
  Packet& packet = position.packet;
  const uint64_t sequence = packet.sequence + position.inserted;
  auto bytes = packets_.Read(packet.place, packet.bytes);
  auto raised = bytes ? RaiseTimes(*bytes, trace_.traces[stream.trace].metadata, position.told_ns)
                      : std::unexpected(bytes.error());
  if (raised) {
    position.edited = std::move(raised->packet);
    raised_ += raised->events;
  } else {
    left_out_++;
    position.edited = EmptyPacket({.trace_uuid = trace_.traces[stream.trace].uuid,
                                   .channel_id = static_cast<uint32_t>(stream.class_id),
                                   .instance_id = stream.instance_id,
                                   .discarded = packet.discarded,
                                   .cpu_id = stream.cpu},
                                  sequence, std::max(packet.end_ns, position.told_ns));
  }
  SetSequence(position.edited, sequence);
  packet.bytes = packet.content_bytes = position.edited.size();
  packet.begin_ns = std::max(packet.begin_ns, position.told_ns);
  packet.end_ns = std::max(packet.end_ns, position.told_ns);
}

void Viewer::PutInserted(size_t number, uint32_t flags) {
  const Stream& stream = trace_.streams[number];
  Position& position = positions_[number];
  const uint64_t sequence = stream.packets.back().sequence + ++position.inserted;
  position.edited = EmptyPacket({.trace_uuid = trace_.traces[stream.trace].uuid,
                                 .channel_id = static_cast<uint32_t>(stream.class_id),
                                 .instance_id = stream.instance_id,
                                 .discarded = position.discarded,
                                 .cpu_id = stream.cpu},
                                sequence, position.told_ns);
  position.packet = {.bytes = position.edited.size(),
                     .content_bytes = position.edited.size(),
                     .begin_ns = position.told_ns,
                     .end_ns = position.told_ns,
                     .sequence = sequence,
                     .discarded = position.discarded};
  position.begin = position.offset;
  position.offset += position.packet.bytes;
  PutIndex(kIndexOk, flags, number, position.packet, position.begin);
}

Status Viewer::GetPacket(ByteReader payload) {
  const auto id = Get<uint64_t>(payload);
  const auto offset = Get<uint64_t>(payload);
  const auto size = Get<uint32_t>(payload);
  const uint64_t number = (id - 3) / 2;
  if (!payload.ok() || id < 3 || id % 2 == 0 || number >= positions_.size()) {
    return Fail(ErrorCode::kCorrupt, "viewer: GET_PACKET of an unknown stream");
  }
  const Position& position = positions_[number];
  const uint64_t at = offset - position.begin;
  if (size == 0 || size > kMaxPartBytes || offset < position.begin || at >= position.packet.bytes ||
      size > position.packet.bytes - at) {
    return Fail(ErrorCode::kCorrupt, "viewer: GET_PACKET of bytes that no index named");
  }
  const auto bytes = position.edited.empty()
                         ? packets_.Read(position.packet.place + at, size)
                         : Result<std::string>(position.edited.substr(at, size));
  const bool is_ok = bytes && bytes->size() == size;
  Put(out_, is_ok ? kOk : kPacketError);
  Put(out_, is_ok ? size : 0);
  Put(out_, uint32_t{0});
  if (is_ok) out_ += *bytes;
  return {};
}

Status Viewer::GetMetadata(ByteReader payload) {
  const auto id = Get<uint64_t>(payload);
  const uint64_t number = (id - 2) / 2;
  if (!payload.ok() || id < 2 || id % 2 == 1 || number >= metadata_.size()) {
    return Fail(ErrorCode::kCorrupt, "viewer: GET_METADATA of an unknown stream");
  }
  const CtfTrace& trace = trace_.traces[number];
  size_t& sent = metadata_[number];
  if (sent == trace.metadata.size()) {
    Put(out_, uint64_t{0});
    Put(out_, kNoNewMetadata);
    return {};
  }
  std::string packet;
  PutMetadataPacket(packet, trace.uuid, std::string_view(trace.metadata).substr(sent));
  sent = trace.metadata.size();
  Put(out_, uint64_t{packet.size()});
  Put(out_, kOk);
  out_ += packet;
  return {};
}

Status Viewer::Detach(ByteReader payload) {
  const auto session = Get<uint64_t>(payload);
  if (!payload.ok()) return Fail(ErrorCode::kCorrupt, "viewer: DETACH is too short");
  Put(out_, is_attached_ && session == kSession ? kOk : kDetachUnknown);
  is_attached_ = false;
  positions_.clear();
  metadata_.clear();
  called_ = 0;
  floor_ns_ = 0;
  return {};
}

}  // namespace weft::live
