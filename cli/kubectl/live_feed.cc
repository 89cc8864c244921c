// SPDX-License-Identifier: Apache-2.0
// See live_feed.h.
#include "cli/kubectl/live_feed.h"

#include <fcntl.h>

#include <algorithm>
#include <filesystem>
#include <utility>

#include "cli/kubectl/relay_path.h"
#include "lib/ctf/vpid_range.h"

namespace weft::kubectl {
namespace {

// The range of vpids is overwritten in place: metadata that differs in it only has grown.
std::string WithoutVpids(std::string_view metadata) {
  std::string text(metadata);
  const std::size_t at = ctf::FindVpidRange(ctf::Version::k1_8, text);
  const std::size_t size = ctf::VpidRangeText(ctf::Version::k1_8, {}).size();
  if (at <= text.size() && size <= text.size() - at) text.replace(at, size, size, ' ');
  return text;
}

// "user_3" is a stream of the channel "user".
std::string ChannelOf(const std::string& file) { return file.substr(0, file.rfind('_')); }

std::string PathOf(const std::string& folder, const std::string& file) {
  return folder + "/" + file;
}

}  // namespace

Result<Spool> Spool::Make() {
  std::error_code error;
  const std::string folder = std::filesystem::temp_directory_path(error).string();
  UniqueFd fd(open(folder.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0600));
  if (!fd) return FailErrno(folder + ": no file can be made there; set TMPDIR");
  return Spool(std::move(fd));
}

Result<std::uint64_t> Spool::Append(std::string_view bytes) {
  const Status written = WriteAt(fd_.get(), bytes, size_);
  if (!written) {
    auto error = written.error();
    return std::unexpected(std::move(error).Context(
        "the events of the Trace have no room among the temporary files; set TMPDIR"));
  }
  return std::exchange(size_, size_ + bytes.size());
}

Result<std::string> Spool::Read(std::uint64_t place, std::size_t bytes) const {
  return ReadAt(fd_.get(), bytes, place);
}

void LiveFeed::SetMetadata(const std::string& folder, std::string_view text) {
  const std::lock_guard lock(mutex_);
  Folder& to = folders_[folder];
  to.metadata = text;
  to.is_readable = text.starts_with("/* CTF 1.8");
  if (!to.is_readable) {
    problems_.push_back(folder +
                        ": its metadata is not CTF 1.8; viewers of lttng-live get none of "
                        "it; kubectl weft live without --serve shows it");
  }
  if (to.trace == kNone) return;
  std::string& known = trace_.traces[to.trace].metadata;
  if (WithoutVpids(text).starts_with(WithoutVpids(known))) {
    known += text.substr(known.size());
    return;
  }
  // A viewer cannot take metadata back: what comes from now on is another trace for it.
  for (live::Stream& stream : trace_.streams) {
    if (stream.trace == to.trace) stream.has_ended = true;
  }
  to.trace = kNone;
}

// babeltrace2 forgets a trace when all of its streams have ended, and would wait for ever for the
// metadata of a stream that comes later.
bool LiveFeed::HasEnded(std::size_t trace) const {
  return std::ranges::none_of(trace_.streams, [trace](const live::Stream& stream) {
    return stream.trace == trace && !stream.has_ended;
  });
}

std::size_t LiveFeed::Place(const std::string& folder, const std::string& file,
                            const ctf::PacketInfo& info) {
  const Key key(folder, info.channel_id, info.instance_id);
  const auto found = streams_.find(key);
  const bool is_known = found != streams_.end();
  if (is_known && !trace_.streams[found->second].has_ended) return found->second;
  Folder& of = folders_[folder];
  // A stream that has ended for viewers and goes on: they cannot have it twice in one trace.
  const bool was_here = is_known && trace_.streams[found->second].trace == of.trace;
  if (of.trace == kNone || was_here || HasEnded(of.trace)) {
    of.trace = trace_.traces.size();
    trace_.traces.push_back({.path = folder, .metadata = of.metadata, .uuid = info.trace_uuid});
  }
  trace_.streams.push_back({.trace = of.trace,
                            .channel = ChannelOf(file),
                            .class_id = info.channel_id,
                            .instance_id = info.instance_id,
                            .cpu = info.cpu_id,
                            .packets = {}});
  return streams_[key] = trace_.streams.size() - 1;
}

Status LiveFeed::AddPacket(const std::string& folder, const std::string& file,
                           std::string_view packet, const ctf::PacketInfo& info) {
  WEFT_ASSIGN(const std::uint64_t place, spool_.Append(packet));
  const std::size_t number = Place(folder, file, info);
  trace_.streams[number].packets.push_back({.place = place,
                                            .bytes = packet.size(),
                                            .content_bytes = info.content_bytes,
                                            .begin_ns = info.begin,
                                            .end_ns = info.end,
                                            .sequence = info.sequence,
                                            .discarded = info.discarded});
  by_file_[PathOf(folder, file)] = number;
  return {};
}

Status LiveFeed::AddPackets(const std::string& folder, const std::string& file,
                            std::string_view packets) {
  const std::lock_guard lock(mutex_);
  const auto found = folders_.find(folder);
  if (found == folders_.end()) {
    problems_.push_back(PathOf(folder, file) + ": its trace has no metadata");
    return {};
  }
  if (!found->second.is_readable) return {};
  while (!packets.empty()) {
    const auto* front = reinterpret_cast<const std::uint8_t*>(packets.data());
    WEFT_ASSIGN(const ctf::PacketInfo info, ctf::ReadPacketInfo({front, packets.size()}));
    if (info.packet_bytes > packets.size())
      return Fail(ErrorCode::kCorrupt, PathOf(folder, file) + ": a packet is cut off");
    WEFT_TRY(AddPacket(folder, file, packets.substr(0, info.packet_bytes), info));
    packets.remove_prefix(info.packet_bytes);
  }
  return {};
}

void LiveFeed::SetSafe(const std::string& folder, const std::string& file, std::uint64_t time_ns) {
  const std::lock_guard lock(mutex_);
  const auto found = by_file_.find(PathOf(folder, file));
  if (found == by_file_.end()) return;
  std::uint64_t& safe = trace_.streams[found->second].safe_ns;
  safe = std::max(safe, time_ns);
}

void LiveFeed::SetEnded(const std::string& folder, const std::string& file) {
  const std::lock_guard lock(mutex_);
  const auto found = by_file_.find(PathOf(folder, file));
  if (found != by_file_.end()) trace_.streams[found->second].has_ended = true;
}

void LiveFeed::End() {
  const std::lock_guard lock(mutex_);
  for (live::Stream& stream : trace_.streams) stream.has_ended = true;
  trace_.is_over = true;
}

std::vector<std::string> LiveFeed::TakeProblems() {
  const std::lock_guard lock(mutex_);
  return std::exchange(problems_, {});
}

}  // namespace weft::kubectl
