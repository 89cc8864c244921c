// SPDX-License-Identifier: Apache-2.0
// See journal.h.
#include "node-agent/consumer/journal.h"

#include <array>
#include <bit>
#include <cstring>
#include <optional>

#include "lib/ipc/journal_version.h"
#include "node-agent/consumer/limits.h"
#include "node-agent/consumer/write_at.h"

namespace weft::consumer {
namespace {

constexpr uint32_t kMagic = 0x4c4e4a57;  // "WJNL"
constexpr uint64_t kRecordOffset[2] = {0, uint64_t{1} << 30};
constexpr uint64_t kLogOffset = uint64_t{2} << 30;
constexpr uint64_t kChunkOffset = uint64_t{3} << 30;
constexpr uint64_t kMaxRecord = uint64_t{512} << 20;
constexpr uint64_t kMaxLog = uint64_t{1} << 30;

struct JournalRecord {
  uint32_t magic;
  uint32_t version;
  uint64_t sequence;
  uint64_t size;       // bytes behind this header
  uint64_t log_bytes;  // of the event log that count
  uint64_t checksum;   // of the bytes, with sequence, size and log_bytes mixed in
};
static_assert(sizeof(JournalRecord) == 40);

struct ChunkRecord {
  uint64_t size;  // bytes behind this header; 0: there is no chunk
  ChunkName name;
  uint64_t checksum;  // of the bytes
};
static_assert(sizeof(ChunkRecord) == 40);

uint64_t RecordChecksum(const JournalRecord& header, Bytes bytes) {
  const std::array<uint64_t, 4> mix = {header.sequence, header.size, header.log_bytes,
                                       Checksum(bytes)};
  return Checksum({reinterpret_cast<const uint8_t*>(mix.data()), sizeof(mix)});
}

// Returns false if the file ends before.
bool ReadAt(int fd, uint64_t offset, std::span<uint8_t> out) {
  while (!out.empty()) {
    const ssize_t n = ::pread(fd, out.data(), out.size(), static_cast<off_t>(offset));
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return false;
    out = out.subspan(static_cast<size_t>(n));
    offset += static_cast<uint64_t>(n);
  }
  return true;
}

struct Found {
  JournalRecord header;
  std::vector<uint8_t> bytes;
};

std::optional<Found> ReadRecord(int fd, uint64_t offset) {
  Found found;
  if (!ReadAt(fd, offset, {reinterpret_cast<uint8_t*>(&found.header), sizeof(found.header)}) ||
      found.header.magic == 0) {
    return std::nullopt;
  }
  if (found.header.magic != kMagic || found.header.version != ipc::kJournalVersion ||
      found.header.size > kMaxRecord || found.header.log_bytes > kMaxLog) {
    return std::nullopt;
  }
  found.bytes.resize(found.header.size);
  if (!ReadAt(fd, offset + sizeof(found.header), found.bytes) ||
      RecordChecksum(found.header, found.bytes) != found.header.checksum) {
    return std::nullopt;
  }
  return found;
}

}  // namespace

uint64_t Checksum(Bytes bytes) {
  constexpr uint64_t kMultiplier = 0x9e3779b97f4a7c15;
  uint64_t h = bytes.size() * kMultiplier;
  size_t at = 0;
  uint64_t word = 0;
  for (; at + 8 <= bytes.size(); at += 8) {
    std::memcpy(&word, bytes.data() + at, 8);
    h = std::rotl((h ^ word) * kMultiplier, 29);
  }
  word = 0;
  if (at < bytes.size()) std::memcpy(&word, bytes.data() + at, bytes.size() - at);
  h = std::rotl((h ^ word) * kMultiplier, 29);
  return h ^ (h >> 32);
}

Result<Journal> Journal::Open(UniqueFd fd) {
  Journal journal(std::move(fd));
  std::optional<Found> best;
  for (const uint64_t offset : kRecordOffset) {
    std::optional<Found> found = ReadRecord(journal.fd_.get(), offset);
    if (found && (!best || found->header.sequence > best->header.sequence)) best = std::move(found);
  }
  if (best) {
    journal.sequence_ = best->header.sequence;
    journal.log_bytes_ = best->header.log_bytes;
    journal.record_ = std::move(best->bytes);
  }
  return journal;
}

Status Journal::ReadEvents(const std::function<Status(Bytes)>& sink) const {
  std::vector<uint8_t> log(log_bytes_);
  if (!ReadAt(fd_.get(), kLogOffset, log)) {
    return Fail(ErrorCode::kCorrupt, "journal: its event log is shorter than it says");
  }
  ByteReader reader(log);
  while (reader.remaining() > 0) {
    const auto size = reader.Read<uint32_t>();
    const Bytes event = reader.ReadBytes(size);
    if (!reader.ok()) return Fail(ErrorCode::kCorrupt, "journal: event log");
    WEFT_TRY(sink(event));
  }
  return {};
}

Status Journal::AppendEvent(Bytes event) {
  if (log_bytes_ + sizeof(uint32_t) + event.size() > kMaxLog) {
    return Fail(ErrorCode::kLimit, "journal: event log is full");
  }
  const auto size = static_cast<uint32_t>(event.size());
  scratch_.resize(sizeof(size) + event.size());
  std::memcpy(scratch_.data(), &size, sizeof(size));
  if (!event.empty()) std::memcpy(scratch_.data() + sizeof(size), event.data(), event.size());
  WEFT_TRY(WriteAt("journal", fd_.get(), kLogOffset + log_bytes_, scratch_));
  log_bytes_ += scratch_.size();
  return {};
}

Status Journal::Commit(Bytes record) {
  if (record.size() > kMaxRecord) return Fail(ErrorCode::kLimit, "journal: record is too large");
  JournalRecord header{kMagic, ipc::kJournalVersion, sequence_ + 1, record.size(), log_bytes_, 0};
  header.checksum = RecordChecksum(header, record);
  scratch_.resize(sizeof(header) + record.size());
  std::memcpy(scratch_.data(), &header, sizeof(header));
  if (!record.empty()) std::memcpy(scratch_.data() + sizeof(header), record.data(), record.size());
  WEFT_TRY(WriteAt("journal", fd_.get(), kRecordOffset[header.sequence & 1], scratch_));
  sequence_ = header.sequence;
  return {};
}

// Writes the bytes first, so that a header that counts has them all.
Status Journal::SaveChunk(const ChunkName& name, Bytes bytes) {
  const ChunkRecord header{bytes.size(), name, Checksum(bytes)};
  WEFT_TRY(WriteAt("journal", fd_.get(), kChunkOffset + sizeof(header), bytes));
  return WriteAt("journal", fd_.get(), kChunkOffset,
                 {reinterpret_cast<const uint8_t*>(&header), sizeof(header)});
}

Status Journal::ClearChunk() {
  const uint64_t none = 0;
  return WriteAt("journal", fd_.get(), kChunkOffset,
                 {reinterpret_cast<const uint8_t*>(&none), sizeof(none)});
}

std::optional<Chunk> Journal::ReadChunk() const {
  ChunkRecord header{};
  Chunk chunk;
  if (!ReadAt(fd_.get(), kChunkOffset, {reinterpret_cast<uint8_t*>(&header), sizeof(header)}) ||
      header.size == 0 || header.size > kMoveChunkBytes)
    return std::nullopt;
  chunk.name = header.name;
  chunk.bytes.resize(header.size);
  if (!ReadAt(fd_.get(), kChunkOffset + sizeof(header), chunk.bytes) ||
      Checksum(chunk.bytes) != header.checksum)
    return std::nullopt;
  return chunk;
}

}  // namespace weft::consumer
