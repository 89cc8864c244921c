// SPDX-License-Identifier: Apache-2.0
// See edit_packet.h.
#include "lib/live/edit_packet.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <vector>

#include "lib/base/unique_fd.h"
#include "lib/ctf/stream_reader.h"
#include "lib/ctf/trace_class.h"

namespace weft::live {
namespace {

// Offsets of u64 fields in a packet's header.
constexpr size_t kBeginAt = 32;
constexpr size_t kEndAt = 40;
constexpr size_t kContentBitsAt = 48;
constexpr size_t kPacketBitsAt = 56;
constexpr size_t kSequenceAt = 64;

void SetField(std::string& packet, size_t at, uint64_t value) {
  std::memcpy(packet.data() + at, &value, sizeof(value));
}

Bytes AsBytes(std::string_view text) {
  return {reinterpret_cast<const uint8_t*>(text.data()), text.size()};
}

// A file without a name, for the reader.
Result<UniqueFd> FileOf(std::string_view bytes) {
  UniqueFd fd(::memfd_create("weft-packet", MFD_CLOEXEC));
  if (!fd) return FailErrno("memfd_create");
  for (size_t done = 0; done < bytes.size();) {
    const ssize_t n = ::write(fd.get(), bytes.data() + done, bytes.size() - done);
    if (n < 0) return FailErrno("write");
    done += static_cast<size_t>(n);
  }
  return fd;
}

}  // namespace

std::string EmptyPacket(const ctf::PacketInfo& like, uint64_t sequence, uint64_t time_ns) {
  ctf::PacketWriter writer({.trace_uuid = like.trace_uuid,
                            .channel_id = like.channel_id,
                            .instance_id = like.instance_id,
                            .cpu_id = like.cpu_id,
                            .first_sequence = sequence,
                            .last_time = time_ns},
                           ctf::kMinPacketCapacity);
  const auto bytes = writer.Finish(like.discarded, time_ns);
  std::string packet(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  SetField(packet, kBeginAt, time_ns);
  return packet;
}

void SetSequence(std::string& packet, uint64_t sequence) {
  SetField(packet, kSequenceAt, sequence);
}

Result<Raised> RaiseTimes(std::string_view packet, std::string_view metadata, uint64_t floor_ns) {
  WEFT_ASSIGN(const ctf::PacketInfo info, ctf::ReadPacketInfo(AsBytes(packet)));
  if (info.packet_bytes != packet.size()) return Fail(ErrorCode::kCorrupt, "not one whole packet");
  WEFT_ASSIGN(const ctf::TraceClass trace, ctf::ParseMetadata(metadata));
  WEFT_ASSIGN(UniqueFd file, FileOf(packet));
  ctf::StreamReader reader(trace, "packet", std::move(file));
  std::vector<std::string> problems;
  Raised raised{.packet = std::string(packet.substr(0, ctf::kPacketHeaderBytes)), .events = 0};
  size_t rest = ctf::kPacketHeaderBytes;  // where events that keep their time begin
  while (info.begin < floor_ns && reader.Next(problems)) {
    if (reader.item().kind != ctf::ItemKind::kEvent) continue;
    const int64_t time = reader.item().time_ns;
    if (time >= 0 && static_cast<uint64_t>(time) >= floor_ns) break;
    const auto body = reader.event_body();
    uint8_t header[ctf::kEventHeaderMaxBytes];
    // In the long form: the time before it has another distance now.
    const uint8_t* end =
        ctf::PutEventHeader(header, static_cast<uint32_t>(reader.item().event->id), 0, floor_ns);
    raised.packet.append(reinterpret_cast<const char*>(header), static_cast<size_t>(end - header));
    raised.packet.append(reinterpret_cast<const char*>(body.data()), body.size());
    rest = reader.event_end();
    raised.events++;
  }
  if (!problems.empty()) return Fail(ErrorCode::kCorrupt, problems.front());
  // The times of these are short: the lowest bits, completed by the event before. That one is now
  // nearer than it was, so they mean what they meant.
  raised.packet.append(packet.substr(rest, info.content_bytes - rest));
  SetField(raised.packet, kBeginAt, std::max(info.begin, floor_ns));
  SetField(raised.packet, kEndAt, std::max(info.end, floor_ns));
  SetField(raised.packet, kContentBitsAt, uint64_t{raised.packet.size()} * 8);
  SetField(raised.packet, kPacketBitsAt, uint64_t{raised.packet.size()} * 8);
  return raised;
}

}  // namespace weft::live
