// SPDX-License-Identifier: Apache-2.0
// See relay_tail.h.
#include "cli/kubectl/relay_tail.h"

#include <algorithm>
#include <utility>

#include "lib/ctf/packet_writer.h"
#include "lib/ctf/trace_class.h"

namespace weft::kubectl {
namespace {

// Fetched of one stream in one round, so that other streams come up, too. Larger than any packet of
// a relay.
constexpr std::uint64_t kMostOfStream = std::uint64_t{4} << 20;
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

Result<std::string_view> RelayTail::NewPackets(std::string_view bytes, File& file) {
  std::size_t at = 0;
  std::size_t old = 0;  // bytes of packets that were handed on already
  while (bytes.size() - at >= ctf::kPacketHeaderBytes) {
    const auto* front = reinterpret_cast<const std::uint8_t*>(bytes.data() + at);
    WEFT_ASSIGN(const ctf::PacketInfo packet,
                ctf::ReadPacketInfo({front, ctf::kPacketHeaderBytes}));
    if (packet.packet_bytes > bytes.size() - at) break;
    at += packet.packet_bytes;
    if (file.last_sequence && packet.sequence <= *file.last_sequence) {
      old = at;
    } else {
      file.last_sequence = packet.sequence;
    }
  }
  if (at == 0 && !bytes.empty())
    return Fail(ErrorCode::kCorrupt, "a packet is larger than a relay accepts");
  file.fetched += at;
  return bytes.substr(old, at - old);
}

Result<std::string> RelayTail::Read(const RelayFile& file, std::uint64_t at, std::uint64_t size) {
  ++requests_;
  return relay_.Read(file.path, at, size);
}

Status RelayTail::FetchMetadata(const RelayFile& file) {
  File& known = files_[file.path];
  if (known.fetched == file.size) return {};
  if (file.size > ctf::kMaxMetadataBytes)
    return Fail(ErrorCode::kLimit, file.path + " is larger than metadata can be");
  WEFT_ASSIGN(const std::string text, Read(file, 0, file.size));
  sink_.SetMetadata(Split(file.path).first, text);
  known.fetched = file.size;
  return {};
}

Result<bool> RelayTail::FetchStream(const RelayFile& file, bool is_over) {
  const auto [folder, name] = Split(file.path);
  const bool is_live = file.live && !is_over;
  const std::uint64_t end = is_live ? std::min(file.kept, file.size) : file.size;
  File& known = files_[file.path];
  // A node that was away for long came back and had packets cut off: they come again.
  if (file.size < known.fetched) known.fetched = 0;
  if (end > known.fetched) {
    const std::uint64_t size = std::min(end - known.fetched, kMostOfStream);
    WEFT_ASSIGN(const std::string bytes, Read(file, known.fetched, size));
    WEFT_ASSIGN(const std::string_view packets, NewPackets(bytes, known));
    if (!packets.empty()) WEFT_TRY(sink_.AddPackets(folder, name, packets));
    if (known.fetched < end) return true;
  }
  return false;
}

void RelayTail::TellState(const RelayFile& file, bool is_over) {
  const auto [folder, name] = Split(file.path);
  if (file.live && !is_over) {
    if (files_[file.path].fetched >= file.kept) sink_.SetSafe(folder, name, file.safe_time);
  } else if (files_[file.path].fetched >= file.size) {
    sink_.SetEnded(folder, name);
  }
}

Result<bool> RelayTail::Fetch(bool is_over) {
  requests_ = 1;
  if (sink_.IsFull()) return true;
  auto files = relay_.Files();
  if (!files && files.error().code == ErrorCode::kNotFound) return false;
  if (!files) return std::unexpected(std::move(files.error()));
  bool more = false;
  for (const RelayFile& file : *files)
    if (Split(file.path).second == "metadata") WEFT_TRY(FetchMetadata(file));
  for (const RelayFile& file : *files) {
    if (Split(file.path).second == "metadata") continue;
    WEFT_ASSIGN(const bool rest, FetchStream(file, is_over));
    more = more || rest;
  }
  // Behind all packets: what this answer says of a stream holds beside what it says of the others.
  for (const RelayFile& file : *files)
    if (Split(file.path).second != "metadata") TellState(file, is_over);
  return more;
}

std::chrono::milliseconds RelayTail::pause() const {
  return std::max(kRound, requests_ * kPerRequest);
}

}  // namespace weft::kubectl
