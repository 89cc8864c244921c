// SPDX-License-Identifier: Apache-2.0
#include "lib/store/store.h"

#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstring>

#include "lib/ctf/packet_writer.h"

namespace weft::store {
namespace {

using ctf::kPacketHeaderBytes;

Result<uint64_t> FileSize(int fd, const std::string& name) {
  struct stat st{};
  if (::fstat(fd, &st) != 0) return FailErrno(name);
  return static_cast<uint64_t>(st.st_size);
}

// Writes all of `bytes` at `offset`, or perhaps a part of them.
Status WriteAt(int fd, uint64_t offset, std::span<const uint8_t> bytes, const std::string& name) {
  size_t done = 0;
  while (done < bytes.size()) {
    const ssize_t n =
        ::pwrite(fd, bytes.data() + done, bytes.size() - done, static_cast<off_t>(offset + done));
    if (n < 0 && errno == EINTR) continue;
    if (n == 0) errno = ENOSPC;
    if (n <= 0) return FailErrno(name);
    done += static_cast<size_t>(n);
  }
  return {};
}

iovec Piece(std::span<const uint8_t> bytes) {
  // The kernel only reads what pwritev gets.
  return {.iov_base = const_cast<uint8_t*>(bytes.data()), .iov_len = bytes.size()};
}

// Writes pieces in the same way. Changes their list. A consumer's sandbox has no pwritev.
Status WriteAt(int fd, uint64_t offset, std::span<iovec> pieces, const std::string& name) {
  while (!pieces.empty()) {
    const ssize_t n =
        ::pwritev(fd, pieces.data(), static_cast<int>(pieces.size()), static_cast<off_t>(offset));
    if (n < 0 && errno == EINTR) continue;
    if (n == 0) errno = ENOSPC;
    if (n <= 0) return FailErrno(name);
    offset += static_cast<size_t>(n);
    for (auto left = static_cast<size_t>(n); left > 0;) {
      iovec& first = pieces.front();
      const size_t taken = std::min(left, first.iov_len);
      first.iov_base = static_cast<uint8_t*>(first.iov_base) + taken;
      first.iov_len -= taken;
      left -= taken;
      if (first.iov_len == 0) pieces = pieces.subspan(1);
    }
  }
  return {};
}

// Writes all of `bytes`, or of pieces of them, at `offset`, or cuts the file to `offset` again.
template <typename Content>
Status AppendAt(int fd, uint64_t offset, Content content, const std::string& name) {
  Status written = WriteAt(fd, offset, content, name);
  // If even this fails, the next write still starts at `offset`.
  if (!written && ::ftruncate(fd, static_cast<off_t>(offset)) != 0) {
    written.error().message += " (and the partial write could not be cut off)";
  }
  return written;
}

// Reads up to bytes.size() bytes; fewer at the end of the file.
Result<size_t> ReadAt(int fd, uint64_t offset, std::span<uint8_t> bytes, const std::string& name) {
  size_t done = 0;
  while (done < bytes.size()) {
    const ssize_t n =
        ::pread(fd, bytes.data() + done, bytes.size() - done, static_cast<off_t>(offset + done));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return FailErrno(name);
    if (n == 0) break;
    done += static_cast<size_t>(n);
  }
  return done;
}

// Opens what lies below a folder, without following a symbolic link.
UniqueFd OpenBelow(int folder, const std::string& name, int flags) {
  open_how how{};
  how.flags = static_cast<uint64_t>(O_CLOEXEC | O_NOFOLLOW | flags);
  how.resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS;
  return UniqueFd(
      static_cast<int>(::syscall(SYS_openat2, folder, name.c_str(), &how, sizeof(how))));
}

}  // namespace

Result<uint64_t> CompleteMetadata(int fd, uint64_t size, const std::string& name) {
  constexpr uint64_t kTail = 2 * 1024 * 1024;  // more than a fragment has
  const uint64_t from = size > kTail ? size - kTail : 0;
  std::string tail(size - from, '\0');
  WEFT_ASSIGN(const size_t got,
              ReadAt(fd, from, {reinterpret_cast<uint8_t*>(tail.data()), tail.size()}, name));
  tail.resize(got);
  const size_t at = tail.rfind("\n\n");
  return at == std::string::npos ? from : from + at + 2;
}

Status FindPackets(int fd, uint64_t size, uint64_t before, StreamState& state) {
  std::array<uint8_t, kPacketHeaderBytes> front;
  while (state.bytes + kPacketHeaderBytes <= size) {
    auto got = ReadAt(fd, state.bytes, front, state.file);
    if (!got) return std::unexpected(std::move(got).error());
    const auto info = ctf::ReadPacketInfo(std::span(front).first(*got));
    if (!info || info->packet_bytes > size - state.bytes || info->sequence >= before) break;
    state.last_begin = state.bytes;
    state.bytes += info->packet_bytes;
    state.packets++;
    state.has_packets = true;
    state.last_sequence = info->sequence;
    state.last_time = info->end;
    state.last_discarded = info->discarded;
    state.last_is_moment = info->begin == info->end;
  }
  return {};
}

Status CheckRelativeName(std::string_view name) {
  bool ok = !name.empty() && name.size() < 4096 && name.find('\0') == std::string_view::npos;
  for (size_t at = 0; ok && at <= name.size();) {
    const size_t slash = std::min(name.find('/', at), name.size());
    const std::string_view part = name.substr(at, slash - at);
    ok = !part.empty() && part != "." && part != "..";
    at = slash + 1;
  }
  if (!ok) return Fail(ErrorCode::kInvalid, "not a relative file name: " + std::string(name));
  return {};
}

Result<std::vector<ChunkFolder::Entry>> DirectoryFileMaker::List(std::string_view folder) {
  if (!folder.empty()) WEFT_TRY(CheckRelativeName(folder));
  const std::string name(folder.empty() ? "." : folder);
  UniqueFd fd(OpenBelow(directory_.get(), name, O_DIRECTORY | O_RDONLY));
  if (!fd && errno == ENOENT) return Fail(ErrorCode::kNotFound, name + ": there is no such folder");
  if (!fd) return FailErrno(name);
  return ListFolder(std::move(fd), name);
}

Status DirectoryFileMaker::Remove(std::string_view file) {
  WEFT_TRY(CheckRelativeName(file));
  const std::string name(file);
  const size_t slash = name.rfind('/');
  UniqueFd folder;
  if (slash != std::string::npos) {
    folder = OpenBelow(directory_.get(), name.substr(0, slash), O_DIRECTORY | O_PATH);
    if (!folder && errno == ENOENT) return {};
    if (!folder) return FailErrno(name);
  }
  const int at = folder ? folder.get() : directory_.get();
  const char* last = name.c_str() + (slash == std::string::npos ? 0 : slash + 1);
  if (::unlinkat(at, last, 0) != 0 && errno != ENOENT) return FailErrno(name);
  return {};
}

Result<UniqueFd> DirectoryFileMaker::OpenFile(std::string_view relative_name) {
  WEFT_TRY(CheckRelativeName(relative_name));
  const std::string name(relative_name);
  UniqueFd folder;
  int at = directory_.get();
  size_t begin = 0;
  for (size_t slash = name.find('/'); slash != std::string::npos; slash = name.find('/', begin)) {
    const std::string part = name.substr(begin, slash - begin);
    if (::mkdirat(at, part.c_str(), 0770) != 0 && errno != EEXIST) return FailErrno(name);
    UniqueFd next(::openat(at, part.c_str(), O_DIRECTORY | O_RDONLY | O_NOFOLLOW | O_CLOEXEC));
    if (!next) return FailErrno(name);
    folder = std::move(next);
    at = folder.get();
    begin = slash + 1;
  }
  UniqueFd file(
      ::openat(at, name.c_str() + begin, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0660));
  if (!file) return FailErrno(name);
  return file;
}

std::string TraceFolder(const std::string& kubernetes_namespace, const std::string& trace,
                        const std::string& uid) {
  return kubernetes_namespace + "/" + trace + (uid.empty() ? "" : "/" + uid);
}

std::string UserTracePath(uint32_t uid) { return "ust/uid/" + std::to_string(uid) + "/64-bit"; }
std::string KernelTracePath() { return "kernel"; }

Result<TraceStore> TraceStore::Open(FileMaker& maker, std::string path, uint64_t most_metadata,
                                    std::shared_ptr<DirectPace> pace) {
  if (pace == nullptr) pace = std::make_shared<DirectPace>();
  TraceStore store(maker, std::move(path), std::move(pace));
  const std::string name = store.path_ + "/metadata";
  WEFT_ASSIGN(store.metadata_, maker.OpenFile(name));
  const int fd = store.metadata_.get();
  WEFT_ASSIGN(const uint64_t size, FileSize(fd, name));
  WEFT_ASSIGN(store.metadata_bytes_, CompleteMetadata(fd, std::min(size, most_metadata), name));
  if (store.metadata_bytes_ < size &&
      ::ftruncate(fd, static_cast<off_t>(store.metadata_bytes_)) != 0) {
    return FailErrno(name);
  }
  return store;
}

Status TraceStore::AppendMetadata(std::string_view fragment) {
  WEFT_TRY(AppendAt(metadata_.get(), metadata_bytes_,
                    std::span(reinterpret_cast<const uint8_t*>(fragment.data()), fragment.size()),
                    path_ + "/metadata"));
  metadata_bytes_ += fragment.size();
  return {};
}

Result<std::string> TraceStore::ReadMetadata(uint64_t offset, size_t size) const {
  const std::string name = path_ + "/metadata";
  if (size > metadata_bytes_ || offset > metadata_bytes_ - size) {
    return Fail(ErrorCode::kInvalid, name + ": shorter than that");
  }
  std::string bytes(size, '\0');
  WEFT_ASSIGN(const size_t got,
              ReadAt(metadata_.get(), offset,
                     {reinterpret_cast<uint8_t*>(bytes.data()), bytes.size()}, name));
  bytes.resize(got);
  return bytes;
}

Status TraceStore::OverwriteMetadata(uint64_t offset, std::string_view bytes) {
  const std::string name = path_ + "/metadata";
  if (bytes.size() > metadata_bytes_ || offset > metadata_bytes_ - bytes.size()) {
    return Fail(ErrorCode::kInvalid, name + ": shorter than that");
  }
  return WriteAt(metadata_.get(), offset,
                 {reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size()}, name);
}

Status TraceStore::OpenFile(Stream& stream, const std::string& name, uint64_t most,
                            uint64_t before) {
  stream.state = {.file = path_ + "/" + name};
  WEFT_ASSIGN(stream.fd, maker_->OpenFile(stream.state.file));
  WEFT_ASSIGN(const uint64_t size, FileSize(stream.fd.get(), stream.state.file));
  WEFT_TRY(FindPackets(stream.fd.get(), std::min(size, most), before, stream.state));
  if (stream.state.bytes < size &&
      ::ftruncate(stream.fd.get(), static_cast<off_t>(stream.state.bytes)) != 0) {
    return FailErrno(stream.state.file);
  }
  if (stream.state.has_packets) stream.next = stream.state.last_sequence + 1;
  stream.behind = stream.dropped = stream.state.bytes;
  stream.direct = false;
  stream.small_direct = 0;
  return {};
}

Result<size_t> TraceStore::AddStream(std::string_view channel, uint32_t number, uint64_t most,
                                     uint64_t before) {
  Stream stream;
  stream.name = std::string(channel) + "_" + std::to_string(number);
  WEFT_TRY(OpenFile(stream, stream.name, most, before));
  streams_.push_back(std::move(stream));
  return streams_.size() - 1;
}

Result<TraceStore::AddedChunks> TraceStore::AddChunks(ChunkFolder& folder, std::string_view channel,
                                                      uint32_t number, uint64_t before,
                                                      uint64_t events) {
  Stream stream;
  stream.name = std::string(channel) + "_" + std::to_string(number);
  stream.events = events;
  WEFT_ASSIGN(const std::vector<ChunkFolder::Entry> entries, folder.List(path_));
  AddedChunks added;
  for (const ChunkFolder::Entry& entry : entries) {
    ChunkName name = ParseChunkName(entry.name);
    if (entry.is_folder || name.stream != stream.name) continue;
    added.chunks.push_back({.name = std::move(name), .bytes = entry.bytes});
  }
  std::ranges::sort(added.chunks, {}, [](const Chunk& chunk) { return chunk.name.sequence; });
  // The newest first: after a kill, what is left has no hole. A chunk that begins at `before` and
  // is the only one stays, as it says where the stream goes on.
  const auto is_cut = [&added, before] {
    const uint64_t first = added.chunks.back().name.sequence;
    return first > before || (first == before && added.chunks.size() > 1);
  };
  while (!added.chunks.empty() && is_cut()) {
    WEFT_TRY(folder.Remove(path_ + "/" + FormatChunkName(added.chunks.back().name)));
    added.chunks.pop_back();
  }
  if (added.chunks.empty()) {
    added.chunks.push_back({.name = {.stream = stream.name, .sequence = before, .events = events}});
  }
  Chunk& newest = added.chunks.back();
  stream.next = newest.name.sequence;
  WEFT_TRY(OpenFile(stream, FormatChunkName(newest.name), UINT64_MAX, before));
  newest.bytes = stream.state.bytes;
  streams_.push_back(std::move(stream));
  added.stream = streams_.size() - 1;
  return added;
}

Result<ChunkName> TraceStore::BeginChunk(size_t number) {
  Stream& stream = streams_.at(number);
  const ChunkName name{.stream = stream.name, .sequence = stream.next, .events = stream.events};
  Stream next;
  next.name = stream.name;
  next.next = stream.next;
  next.events = stream.events;
  if (stream.ended && ::fsync(stream.ended.get()) != 0) return FailErrno(stream.state.file);
  WEFT_TRY(OpenFile(next, FormatChunkName(name), 0, 0));
  (void)::sync_file_range(stream.fd.get(), static_cast<off_t>(stream.behind), 0,
                          SYNC_FILE_RANGE_WRITE);
  next.ended = std::move(stream.fd);
  stream = std::move(next);
  return name;
}

// Advice only: where a file system has no such thing, its own writing has to do, and an error of
// the disk is reported by fsync.
void TraceStore::WriteBehind(Stream& stream) {
  const uint64_t end = stream.state.bytes;
  if (end - stream.behind < write_behind_) return;
  const auto start = std::chrono::steady_clock::now();
  const int fd = stream.fd.get();
  // No flag that waits: it would also take an error away from fsync.
  (void)::sync_file_range(fd, static_cast<off_t>(stream.behind),
                          static_cast<off_t>(end - stream.behind), SYNC_FILE_RANGE_WRITE);
  stream.behind = end;
  if (end - stream.dropped > kCachedBytes) {
    const uint64_t drop = end - stream.dropped - kCachedBytes;
    (void)::posix_fadvise(fd, static_cast<off_t>(stream.dropped), static_cast<off_t>(drop),
                          POSIX_FADV_DONTNEED);
    stream.dropped += drop;
  }
  const std::chrono::nanoseconds took = std::chrono::steady_clock::now() - start;
  write_behind_ = static_cast<uint64_t>(took.count()) > kSlowDiskNs
                      ? std::min(write_behind_ * 2, kMaxLeftToKernel)
                      : std::max(write_behind_ / 2, kWriteBehindBytes);
}

bool TraceStore::WantsPages(const Stream& stream, size_t content) const {
  return !no_direct_ && (content >= kDirectBytes || stream.small_direct > 0);
}

size_t TraceStore::PacketBytes(size_t stream, size_t content) const {
  if (!WantsPages(streams_.at(stream), content)) return content;
  const uint64_t offset = streams_.at(stream).state.bytes;
  const uint64_t end = offset + content + kDirectAlignment - 1;
  return static_cast<size_t>(end / kDirectAlignment * kDirectAlignment - offset);
}

bool TraceStore::SetDirect(Stream& stream, bool direct) {
  if (stream.direct == direct) return true;
  const int flags = ::fcntl(stream.fd.get(), F_GETFL);
  if (flags < 0 ||
      ::fcntl(stream.fd.get(), F_SETFL, direct ? flags | O_DIRECT : flags & ~O_DIRECT) != 0) {
    return false;
  }
  stream.direct = direct;
  return true;
}

Status TraceStore::Append(const Stream& stream, std::span<const uint8_t> packet, size_t bytes) {
  const uint64_t offset = stream.state.bytes;
  if (bytes == packet.size()) {
    return AppendAt(stream.fd.get(), offset, packet, stream.state.file);
  }
  // The first page, which says another size then, and the last ones, which get zeros, are copied.
  constexpr size_t kPage = kDirectAlignment;
  if (edges_.empty()) edges_ = PageBuffer(kEdgePages * kPage);
  const std::span<uint8_t> edges = edges_.span();
  const bool has_middle = bytes > edges.size();
  const size_t head = has_middle ? kPage : 0;
  const size_t middle_end = has_middle ? packet.size() / kPage * kPage : 0;
  std::ranges::copy(packet.first(head), edges.begin());
  const auto end = std::ranges::copy(packet.subspan(middle_end), edges.begin() + head).out;
  std::fill(end, edges.end(), uint8_t{0});
  ctf::SetPacketBytes(edges, bytes);
  const std::span<const uint8_t> tail = edges.subspan(head, bytes - middle_end);
  if (!has_middle) return AppendAt(stream.fd.get(), offset, tail, stream.state.file);
  std::array<iovec, 3> pieces{Piece(edges.first(head)),
                              Piece(packet.subspan(head, middle_end - head)), Piece(tail)};
  return AppendAt(stream.fd.get(), offset, std::span(pieces), stream.state.file);
}

Status TraceStore::WriteBytes(Stream& stream, std::span<const uint8_t> packet, size_t bytes) {
  const uint64_t offset = stream.state.bytes;
  const auto on_page = [](uint64_t n) { return n % kDirectAlignment == 0; };
  const bool large = packet.size() >= kDirectBytes;
  const bool direct = WantsPages(stream, packet.size()) && pace_->direct() && on_page(bytes) &&
                      on_page(offset) && on_page(reinterpret_cast<uintptr_t>(packet.data()));
  stream.small_direct = large ? kSmallDirect : stream.small_direct - (stream.small_direct > 0);
  if (direct && SetDirect(stream, true)) {
    const auto start = std::chrono::steady_clock::now();
    Status written = Append(stream, packet, bytes);
    if (written) {
      if (stream.behind == offset) stream.behind = stream.dropped = offset + bytes;
      if (large) pace_->WroteDirectly(start, std::chrono::steady_clock::now(), bytes);
    }
    if (written || written.error().sys_errno != EINVAL) return written;
  }
  // EINVAL: the file system did not say before that it has no direct writes, or other pages.
  no_direct_ = no_direct_ || direct;
  (void)SetDirect(stream, false);
  pace_->WroteToCache(bytes);
  return Append(stream, packet, bytes);
}

Status TraceStore::WritePacket(size_t stream, std::span<const uint8_t> packet, uint64_t events) {
  return Write(stream, packet, events, packet.size());
}

Status TraceStore::WritePadded(size_t stream, std::span<const uint8_t> packet, uint64_t events) {
  return Write(stream, packet, events, PacketBytes(stream, packet.size()));
}

Status TraceStore::Write(size_t stream, std::span<const uint8_t> packet, uint64_t events,
                         size_t bytes) {
  Stream& to = streams_.at(stream);
  WEFT_ASSIGN(const ctf::PacketInfo info, ctf::ReadPacketInfo(packet));
  if (info.packet_bytes != packet.size()) {
    return Fail(ErrorCode::kCorrupt, to.state.file + ": packet says another size than it has");
  }
  if (info.sequence < to.next) return {};
  WEFT_TRY(WriteBytes(to, packet, bytes));
  to.next = info.sequence + 1;
  to.events += events;
  to.state.last_begin = to.state.bytes;
  to.state.bytes += bytes;
  to.state.packets++;
  to.state.has_packets = true;
  to.state.last_sequence = info.sequence;
  to.state.last_time = info.end;
  to.state.last_discarded = info.discarded;
  to.state.last_is_moment = info.begin == info.end;
  WriteBehind(to);
  return {};
}

Status TraceStore::Sync() {
  if (::fsync(metadata_.get()) != 0) return FailErrno(path_ + "/metadata");
  for (Stream& stream : streams_) {
    if (::fsync(stream.fd.get()) != 0) return FailErrno(stream.state.file);
    if (!stream.ended) continue;
    if (::fsync(stream.ended.get()) != 0) return FailErrno(stream.state.file);
    stream.ended.reset();
  }
  return {};
}

uint64_t TraceStore::total_bytes() const {
  uint64_t total = metadata_bytes_;
  for (const Stream& stream : streams_) total += stream.state.bytes;
  return total;
}

}  // namespace weft::store
